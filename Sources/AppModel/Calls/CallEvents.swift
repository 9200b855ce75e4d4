import Foundation

/// What happens to calls. CallKit, PushKit, the SDK and the screens are translated into these events.
public enum CallEvent: Equatable, Sendable {
    /// A push tells that a call rings. The report has to follow at once. `push` is nil for an ordinary notification.
    case push(callID: String, push: PushID?)
    /// The system's answer to a report.
    case reportResult(SystemCallID, push: PushID?, SystemReportResult)
    case server(CallServerEvent)
    case system(CallSystemEvent)
    case app(CallAppEvent)
    case audio(SystemAudioEvent)
    case timer(CallTimer)
    /// The client connection is up. `isNew` is false if it resumed, so that nothing was lost.
    case online(isNew: Bool)
    case offline
    case environment(CallEnvironment)
    /// PushKit's token in hexadecimal, or nil when it became invalid.
    case pushToken(String?)
}

/// How the system answered a report of an incoming call.
public enum SystemReportResult: Equatable, Sendable {
    case ok
    /// The system knows the call already.
    case known
    /// Do not disturb, a block list or a filter of the system.
    case filtered
    /// Anything else.
    case refused
}

/// What the server says about calls.
public enum CallServerEvent: Equatable, Sendable {
    case incoming(IncomingCallInfo)
    /// Answers a start. Also answers a rejoin of a call that still rings.
    case placed(SystemCallID, callID: String)
    case startRefused(SystemCallID, CallTrouble)
    case ringing(callID: String, devices: Int)
    case accepted(callID: String, personID: String)
    case acceptRefused(callID: String, CallTrouble)
    case rejoinRefused(callID: String)
    /// Media flows in the session of the call.
    case mediaConnected(callID: String)
    case partner(callID: String, isAway: Bool)
    case ended(EndedCall)
}

/// The end of a call.
public struct EndedCall: Equatable, Sendable {
    public var callID: String
    public var reason: CallEndReason
    public var person: CallPerson?
    /// The call that continues, if two calls were merged.
    public var into: String?

    public init(callID: String, reason: CallEndReason, person: CallPerson? = nil, into: String? = nil) {
        (self.callID, self.reason, self.person, self.into) = (callID, reason, person, into)
    }
}

/// Why something was not possible: the server's code and what to do.
public struct CallTrouble: Equatable, Sendable {
    public var code: String
    public var message: String

    public init(code: String, message: String) { (self.code, self.message) = (code, message) }
}

extension CallTrouble {
    static let cameraNeeded = CallTrouble(
        code: "camera_needed", message: "Confab is not allowed to use the camera. Allow it in Settings to be seen.")
    static let microphoneNeeded = CallTrouble(
        code: "microphone_needed",
        message: "Confab is not allowed to use the microphone. Allow it in Settings to be heard.")
}

/// What the system's call screen asks for. Without that screen, the app's own buttons are the same events without an action.
public enum CallSystemEvent: Equatable, Sendable {
    case start(SystemCallID, ActionID?)
    case answer(SystemCallID, ActionID?)
    case end(SystemCallID, ActionID?)
    case mute(SystemCallID, Bool, ActionID?)
    case hold(SystemCallID, Bool, ActionID?)
    /// The system gave up waiting for an action. It is neither fulfilled nor failed afterwards.
    case timedOut(ActionID)
    /// The system refused what the app had requested.
    case requestFailed(CallSystemRequest)
    /// The system forgot all calls and actions.
    case reset
}

/// What the app asks of the system. The state changes when the system sends the action.
public enum CallSystemRequest: Equatable, Sendable {
    case start(SystemCallID, CallPerson, video: Bool)
    case answer(SystemCallID)
    case end(SystemCallID)
    case mute(SystemCallID, Bool)
    case hold(SystemCallID, Bool)
}

/// What the person does on the app's own screens.
public enum CallAppEvent: Equatable, Sendable {
    /// `id` is new and random.
    case call(SystemCallID, CallPerson, video: Bool)
    case answer(SystemCallID)
    case end(SystemCallID)
    case mute(Bool)
    case hold(Bool)
    case video(Bool)
    /// The system took the camera away, or gave it back.
    case camera(works: Bool)
    /// The screen is shown in place of the camera, or no longer.
    case sharing(Bool)
    /// The end of a call was shown.
    case shown(callID: String)
}

/// What becomes of the audio session. Where the app activates it itself, `activated` and `refused` answer that.
public enum SystemAudioEvent: Equatable, Sendable {
    case activated, deactivated
    /// The system did not activate the session, for example during a call of the phone.
    case refused
    /// A session that was refused may be activated now: the app was opened again, or a while has passed.
    case tryAgain
}

/// A timer that the coordinator started.
public enum CallTimer: Equatable, Hashable, Sendable {
    /// The server should have told about this call by now.
    case unconfirmed(SystemCallID)
    /// A call waits for the audio of the previous one to stop.
    case queued

    public var interval: Duration {
        switch self {
        case .unconfirmed: .seconds(10)
        case .queued: .seconds(2)
        }
    }
}

/// What the device allows at the moment.
public struct CallEnvironment: Equatable, Sendable {
    public enum Microphone: Sendable { case undetermined, allowed, refused }

    public var microphone: Microphone
    public var isLocked: Bool
    /// Whether the camera can be used, or asked for.
    public var canShow: Bool

    public init(microphone: Microphone, isLocked: Bool, canShow: Bool = true) {
        (self.microphone, self.isLocked, self.canShow) = (microphone, isLocked, canShow)
    }

    /// A locked phone can show no prompt.
    var canRecord: Bool {
        switch microphone {
        case .allowed: true
        case .refused: false
        case .undetermined: !isLocked
        }
    }
}

/// What the shell has to do, in order.
public enum CallEffect: Equatable, Sendable {
    // The system.
    /// Reports an incoming call, at once. The person is nil while only a push told about the call.
    case report(SystemCallID, CallPerson?, video: Bool, push: PushID?)
    case update(SystemCallID, CallPerson, video: Bool)
    case reportConnecting(SystemCallID)
    case reportConnected(SystemCallID)
    case reportEnded(SystemCallID, SystemEndReason)
    case completePush(PushID)
    case request(CallSystemRequest)
    case fulfil(ActionID)
    case fail(ActionID)
    /// The app rings, where the system's call screen must not be used. The effect is repeated for a call that already rings, as
    /// soon as its caller or kind is known.
    case ring(SystemCallID, name: String?, video: Bool)
    case stopRinging(SystemCallID)
    // The server.
    case openSocket
    case appear
    case send(CallRequest)
    case registerPush(String)
    case unregisterPush(String)
    // Media.
    /// Joins the session of the call. The SDK keeps its token.
    case join(SystemCallID)
    case publish(SystemCallID, video: Bool)
    case leave(SystemCallID)
    case setMuted(SystemCallID, Bool)
    case setVideo(SystemCallID, Bool)
    case audio(AudioEffect)
    // The screen.
    case startTimer(CallTimer)
    case stopTimer(CallTimer)
    case show(EndedCall)
    case tell(CallAdvice)
}

/// A request to the server.
public enum CallRequest: Equatable, Sendable {
    /// Answered by `placed` or `startRefused` with the same id, exactly once.
    case start(SystemCallID, CallPerson, video: Bool)
    case accept(callID: String, video: Bool)
    case decline(callID: String)
    case cancel(callID: String)
    case end(callID: String)
    case update(callID: String, video: Bool)
    case rejoin(callID: String)
    case seen(callID: String)
}

/// What to tell the person.
public enum CallAdvice: Equatable, Sendable {
    /// The call was answered without permission to use the microphone.
    case allowMicrophone(CallPerson?)
    /// No call was placed, because the microphone may not be used.
    case microphoneNeeded
    /// The camera was not turned on, because it may not be used.
    case cameraNeeded
    /// Another call has to end first.
    case alreadyInCall
    /// The system's call screen did not accept a request.
    case systemRefused
    case trouble(CallTrouble)
}
