import Confab
import Foundation

/// An input to ``CallCoordinator``: an event from CallKit, PushKit, the SDK or the screens.
public enum CallEvent: Equatable, Sendable {
    /// A push announced an incoming call, which must be reported to the system at once. `push` is nil if the push has
    /// no completion to call.
    case push(callID: String, push: PushID?)
    /// The system's answer to a report.
    case reportResult(SystemCallID, push: PushID?, SystemReportResult)
    case server(CallServerEvent)
    case system(CallSystemEvent)
    case app(CallAppEvent)
    case audio(SystemAudioEvent)
    case timer(CallTimer)
    /// The client is connected. `isNew` is false if the previous connection was resumed without loss.
    case online(isNew: Bool)
    case offline
    case environment(CallEnvironment)
    /// PushKit's token in hexadecimal, or nil after it became invalid.
    case pushToken(String?)
}

/// How the system answered a report of an incoming call.
public enum SystemReportResult: Equatable, Sendable {
    case ok
    /// The system already has the call.
    case known
    /// Rejected by Do Not Disturb, or by the system's block list or filter.
    case filtered
    /// Rejected for any other reason.
    case refused
}

/// What the SDK reports about a call.
public enum CallServerEvent: Equatable, Sendable {
    /// A call rings on this device.
    case incoming(Call)
    /// The server has created the call that `CallRequest.start` requested.
    case placed(SystemCallID, Call)
    case startRefused(SystemCallID, ConfabError)
    case acceptRefused(CallID, ConfabError)
    /// A call changed. If the two people called each other, its id may have changed too.
    case changed(Call)
    case ended(CallEnding)
}

extension ConfabError {
    static let cameraNeeded = ConfabError(
        "camera_needed", "Confab is not allowed to use the camera. Allow it in Settings to be seen.")
    static let microphoneNeeded = ConfabError(
        "microphone_needed", "Confab is not allowed to use the microphone. Allow it in Settings to be heard.")
}

/// An action from the system's call screen. Without CallKit, the app's own buttons send the same events without an
/// action id.
public enum CallSystemEvent: Equatable, Sendable {
    case start(SystemCallID, ActionID?)
    case answer(SystemCallID, ActionID?)
    case end(SystemCallID, ActionID?)
    case mute(SystemCallID, Bool, ActionID?)
    case hold(SystemCallID, Bool, ActionID?)
    /// The system stopped waiting for an action, which must not be fulfilled or failed afterwards.
    case timedOut(ActionID)
    /// The system refused the app's request.
    case requestFailed(CallSystemRequest)
    /// The system dropped all calls and actions.
    case reset
}

/// A request to the system. The state changes only when the system answers with the action.
public enum CallSystemRequest: Equatable, Sendable {
    case start(SystemCallID, Person, video: Bool)
    case answer(SystemCallID)
    case end(SystemCallID)
    case mute(SystemCallID, Bool)
    case hold(SystemCallID, Bool)
}

/// An action by the user on the app's own screens.
public enum CallAppEvent: Equatable, Sendable {
    /// The user calls a person. The id is new and random.
    case call(SystemCallID, Person, video: Bool)
    case answer(SystemCallID)
    case end(SystemCallID)
    case mute(Bool)
    case hold(Bool)
    case video(Bool)
    /// False when the system took the camera away from the app, true when it gave the camera back.
    case camera(works: Bool)
    /// True when the screen share started, false when it ended.
    case sharing(Bool)
    /// The screen has shown the user that a call has ended, so the call counts as seen.
    case shown(CallID)
}

/// An event from the audio session. Where the app activates the session itself, `activated` and `refused` report
/// whether that succeeded.
public enum SystemAudioEvent: Equatable, Sendable {
    case activated, deactivated
    /// The system did not activate the session, for example during a phone call.
    case refused
    /// Time to retry a refused activation: the app became active again, or the retry interval has passed.
    case tryAgain
}

/// A timer that the coordinator started.
public enum CallTimer: Equatable, Hashable, Sendable {
    /// Limits how long a call that is known only from a push waits for the server to confirm it.
    case unconfirmed(SystemCallID)
    /// Limits how long a queued call waits for the previous call's audio to stop.
    case queued

    public var interval: Duration {
        switch self {
        case .unconfirmed: .seconds(10)
        case .queued: .seconds(2)
        }
    }
}

/// The current permissions and lock state of the device.
public struct CallEnvironment: Equatable, Sendable {
    /// The permission to use the microphone.
    public enum Microphone: Sendable { case undetermined, allowed, refused }

    public var microphone: Microphone
    public var isLocked: Bool
    /// Whether the camera may be used, or its permission can still be requested.
    public var canShow: Bool

    public init(microphone: Microphone, isLocked: Bool, canShow: Bool = true) {
        (self.microphone, self.isLocked, self.canShow) = (microphone, isLocked, canShow)
    }

    /// Whether audio can be recorded, or permission can be requested. A locked phone cannot show the permission
    /// prompt.
    var canRecord: Bool {
        switch microphone {
        case .allowed: true
        case .refused: false
        case .undetermined: !isLocked
        }
    }
}

/// An output from ``CallCoordinator``: an effect to perform. Effects must be performed in order.
public enum CallEffect: Equatable, Sendable {
    // Effects on the system.
    /// Reports an incoming call at once. The person is nil while the call is known only from a push.
    case report(SystemCallID, Person?, video: Bool, push: PushID?)
    case update(SystemCallID, Person, video: Bool)
    case reportConnecting(SystemCallID)
    case reportConnected(SystemCallID)
    case reportEnded(SystemCallID, SystemEndReason)
    case completePush(PushID)
    case request(CallSystemRequest)
    case fulfil(ActionID)
    case fail(ActionID)
    /// Rings in the app, where CallKit may not be used.
    case ring(SystemCallID)
    case stopRinging(SystemCallID)
    // Effects on the server and the media.
    case send(CallRequest)
    case audio(AudioEffect)
    // Effects on the screen.
    case startTimer(CallTimer)
    case stopTimer(CallTimer)
    case show(CallEnding)
    case tell(CallAdvice)
}

/// A request to the SDK or to this device's media.
public enum CallRequest: Equatable, Sendable {
    case openSocket
    case appear
    case registerPush(String), unregisterPush(String)
    /// Starts a call. Answered by `placed` or `startRefused` with the same id, exactly once.
    case start(SystemCallID, Person, video: Bool)
    case accept(CallID, video: Bool)
    case end(CallID)
    case update(CallID, video: Bool)
    case seen(CallID)
    /// True turns the microphone off, false turns it on. The id is nil if the server has not created the call yet:
    /// then the change is not sent to the server.
    case setMuted(CallID?, Bool)
    /// Turns the camera on or off.
    case setVideo(Bool)
}

/// A message to the user.
public enum CallAdvice: Equatable, Sendable {
    /// The user answered a call without permission to use the microphone.
    case allowMicrophone(Person?)
    /// No call was placed, because the microphone permission is missing.
    case microphoneNeeded
    /// The camera was not turned on, because its permission is missing.
    case cameraNeeded
    /// No call was placed, because another call has to end first.
    case alreadyInCall
    /// The system's call screen refused a request.
    case systemRefused
    case trouble(ConfabError)
}
