import CSockets
import Foundation

/// Names the current thread in tools such as top and perf.
///
/// `Thread.name` is not enough: on Linux it names only the current thread, and not before `Thread.start` has returned.
/// - Parameter name: at most 15 bytes, because Linux refuses a longer name.
package func setNameOfCurrentThread(_ name: String) {
    #if os(Linux)
    confab_name_thread(name)
    #else
    Thread.current.name = name
    #endif
}
