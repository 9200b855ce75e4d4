// Expect: nearly matches defaulted requirement
import CallKit
import Foundation

final class Bridge: NSObject {}

extension Bridge: CXProviderDelegate {
    func providerDidReset(_ provider: CXProvider) {}
    func provider(_ provider: CXProvider, performs action: CXAnswerCallAction) { action.fulfill() }
}
