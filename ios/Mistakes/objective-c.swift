// Expect: Objective-C interoperability is disabled
import Foundation

final class Target: NSObject {
    @objc func tapped() {}
}
