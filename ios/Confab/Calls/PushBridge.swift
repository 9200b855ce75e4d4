#if PUSH
import AppModel
import Foundation
import PushKit

/// Receives call pushes, which arrive even while the app is closed. PushKit calls it on the main thread.
@MainActor final class PushBridge: NSObject {
    private let registry = PKPushRegistry(queue: .main)
    private let calls: CallKitBridge

    init(calls: CallKitBridge) {
        self.calls = calls
        super.init()
        registry.delegate = self
        registry.desiredPushTypes = [.voIP]
    }
}

extension PushBridge: @preconcurrency PKPushRegistryDelegate {
    func pushRegistry(
        _ registry: PKPushRegistry, didUpdate pushCredentials: PKPushCredentials, for type: PKPushType
    ) {
        calls.onEvent?(.pushToken(bytes: pushCredentials.token))
    }

    func pushRegistry(
        _ registry: PKPushRegistry, didReceiveIncomingPushWith payload: PKPushPayload, for type: PKPushType,
        completion: @escaping () -> Void
    ) {
        calls.received(payload.dictionaryPayload, completion: completion)
    }

    func pushRegistry(_ registry: PKPushRegistry, didInvalidatePushTokenFor type: PKPushType) {
        calls.onEvent?(.pushToken(nil))
    }
}
#endif
