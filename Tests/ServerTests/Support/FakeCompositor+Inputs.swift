import Foundation
import LiveComposing
import TestSupport

extension FakeCompositor {
    /// The types of the messages that it got.
    var inputs: [CompositorInput.Kind] {
        let text = (try? String(contentsOfFile: "\(folder)/inputs", encoding: .utf8)) ?? ""
        return text.split(separator: "\n").compactMap { UInt8($0).flatMap(CompositorInput.Kind.init) }
    }
}
