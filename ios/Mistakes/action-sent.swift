// Expect: sending 'action' risks causing data races
import CallKit
import Foundation

@MainActor final class Bridge: NSObject {
    func end(_ action: CXEndCallAction) { action.fulfill() }
}

extension Bridge: CXProviderDelegate {
    nonisolated func providerDidReset(_ provider: CXProvider) {}
    nonisolated func provider(_ provider: CXProvider, perform action: CXEndCallAction) {
        MainActor.assumeIsolated { end(action) }
    }
}
