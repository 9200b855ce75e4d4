import AVFoundation
import AppModel
import Confab
import CallKit
import Foundation
import UIKit

/// Translates between ``CallCoordinator`` and CallKit, in both directions. CallKit calls it on the main thread.
@MainActor final class CallKitBridge: NSObject, CallSystem {
    let isAllowed = CallCoordinator.allowsSystem(inRegion: Locale.current.region?.identifier)
    var onEvent: (@MainActor (CallEvent) -> Void)?
    private lazy var provider = makeProvider()
    private let controller = CXCallController()
    private var actions = PendingValues<CXAction>()
    private var pushes = PendingValues<() -> Void>()

    /// Creates the provider. Must be called while the app launches, because a push may have started the app.
    func prepare() { if isAllowed { _ = provider } }

    /// Handles a push. The coordinator reports the call before this method returns, as the system requires.
    func received(_ payload: [AnyHashable: Any], completion: @escaping () -> Void) {
        let (push, expired) = pushes.keep(completion)
        onEvent?(.push(payload: payload, push: push))
        expired?()
    }

    func perform(_ effect: CallEffect) {
        switch effect {
        case .report(let id, let person, let video, let push): report(id, person, video, push)
        case .update(let id, let person, let video):
            provider.reportCall(with: id, updated: CXCallUpdate(person, hasVideo: video))
        case .reportConnecting(let id): provider.reportOutgoingCall(with: id, startedConnectingAt: nil)
        case .reportConnected(let id): provider.reportOutgoingCall(with: id, connectedAt: nil)
        case .reportEnded(let id, let reason): provider.reportCall(with: id, endedAt: nil, reason: reason.native)
        case .completePush(let push): pushes.take(push)?()
        case .request(let request): send(request)
        case .fulfil(let action): actions.take(action)?.fulfill()
        case .fail(let action): actions.take(action)?.fail()
        // These effects do not concern the system. They are listed so that the compiler reports an error when an effect
        // is added.
        case .ring, .stopRinging, .send, .audio, .startTimer, .stopTimer, .show, .tell: break
        }
    }

    private func makeProvider() -> CXProvider {
        let configuration = CXProviderConfiguration()
        configuration.supportsVideo = CallScreenFeatures.hasVideo
        configuration.maximumCallGroups = CallScreenFeatures.maxGroups
        configuration.maximumCallsPerCallGroup = CallScreenFeatures.maxCallsPerGroup
        configuration.supportedHandleTypes = [.generic]
        configuration.includesCallsInRecents = CallScreenFeatures.isInRecents
        configuration.iconTemplateImageData = UIImage(systemName: CallScreenFeatures.symbol)?.pngData()
        let provider = CXProvider(configuration: configuration)
        provider.setDelegate(self, queue: nil)
        return provider
    }

    private func report(_ id: SystemCallID, _ person: Person?, _ video: Bool, _ push: PushID?) {
        let update = CXCallUpdate(person, hasVideo: video)
        provider.reportNewIncomingCall(with: id, update: update) { @Sendable [weak self] error in
            let result = SystemReportResult(error)
            Task { @MainActor in self?.onEvent?(.reportResult(id, push: push, result)) }
        }
    }

    private func send(_ request: CallSystemRequest) {
        controller.request(CXTransaction(action: request.action)) { @Sendable [weak self] error in
            guard error != nil else { return }
            Task { @MainActor in self?.onEvent?(.system(.requestFailed(request))) }
        }
    }

    private func keep(_ action: CXAction) -> ActionID {
        let (id, expired) = actions.keep(action)
        expired?.fail()
        return id
    }
}

extension CallKitBridge: @preconcurrency CXProviderDelegate {
    func providerDidReset(_ provider: CXProvider) {
        actions.reset()
        onEvent?(.system(.reset))
    }
    func provider(_ provider: CXProvider, perform action: CXStartCallAction) {
        onEvent?(.system(.start(action.callUUID, keep(action))))
    }
    func provider(_ provider: CXProvider, perform action: CXAnswerCallAction) {
        onEvent?(.system(.answer(action.callUUID, keep(action))))
    }
    func provider(_ provider: CXProvider, perform action: CXEndCallAction) {
        onEvent?(.system(.end(action.callUUID, keep(action))))
    }
    func provider(_ provider: CXProvider, perform action: CXSetHeldCallAction) {
        onEvent?(.system(.hold(action.callUUID, action.isOnHold, keep(action))))
    }
    func provider(_ provider: CXProvider, perform action: CXSetMutedCallAction) {
        onEvent?(.system(.mute(action.callUUID, action.isMuted, keep(action))))
    }
    func provider(_ provider: CXProvider, timedOutPerforming action: CXAction) {
        if let id = actions.drop(where: { $0.uuid == action.uuid }) { onEvent?(.system(.timedOut(id))) }
    }
    func provider(_ provider: CXProvider, didActivate audioSession: AVAudioSession) { onEvent?(.audio(.activated)) }
    func provider(_ provider: CXProvider, didDeactivate audioSession: AVAudioSession) {
        onEvent?(.audio(.deactivated))
    }
}
