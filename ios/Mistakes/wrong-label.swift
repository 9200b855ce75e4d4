// Expect: incorrect argument label in call (have 'with:updated:_:', expected 'with:update:_:')
import CallKit
import Foundation

func report(_ provider: CXProvider) {
    provider.reportNewIncomingCall(with: UUID(), updated: CXCallUpdate()) { _ in }
}
