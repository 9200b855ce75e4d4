// Objects of the application, and objects that hold them, must be released outside the lock. Their `deinit` may call the
// SDK, and taking the same lock again crashes the process. So return removed objects from `withLock`.

#if canImport(Darwin)
import os

/// A value that can be accessed only under a lock. On Apple platforms `Mutex` requires iOS 18, so it is not used.
final class LockedValue<Value: Sendable>: Sendable {
    private let lock: OSAllocatedUnfairLock<Value>

    init(_ value: Value) { lock = OSAllocatedUnfairLock(initialState: value) }

    func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        lock.withLockUnchecked(body)
    }
}
#else
import Synchronization

/// A value that can be accessed only under a lock.
final class LockedValue<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>

    init(_ value: Value) { mutex = Mutex(value) }

    func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        mutex.withLock { body(&$0) }
    }
}
#endif
