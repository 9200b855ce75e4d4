import Confab
import Foundation

/// The id of a call in CallKit. For an outgoing call it is random. For an incoming call it is the server's call id, so
/// that a push and the server's message refer to the same call.
public typealias SystemCallID = UUID

extension SystemCallID {
    /// The id of a call whose push cannot be parsed.
    static let unreadable = UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))

    public init(_ id: CallID) {
        var text = "\(id)"
        for place in [8, 13, 18, 23] { text.insert("-", at: text.index(text.startIndex, offsetBy: place)) }
        self = UUID(uuidString: text) ?? .unreadable
    }
}

/// The id of an action from the system. Each action is fulfilled or failed exactly once.
public typealias ActionID = UInt64

/// The id of a push. The push's completion must be called exactly once, after the call was reported to the system.
public typealias PushID = UInt64

extension Person {
    /// The name shown for a caller while the call is known only from a push.
    public static let unknownName = "Confab"
}

/// The reason shown by the system for the end of a call. The raw values are CallKit's.
public enum SystemEndReason: Int, Equatable, Sendable {
    case failed = 1
    case remoteEnded, unanswered, answeredElsewhere, declinedElsewhere

    init(_ outcome: CallEnding.Outcome) {
        self =
            switch outcome {
            case .hungUp, .ended, .declined, .cancelled: .remoteEnded
            case .missed, .unanswered, .busy: .unanswered
            // A call that rang on this device and was merged continues as the outgoing call.
            case .answeredElsewhere, .merged: .answeredElsewhere
            case .declinedElsewhere: .declinedElsewhere
            // A newer server may send reasons that are unknown to this app.
            default: .failed
            }
    }
}

/// A call that the coordinator manages, with its state on this device, in CallKit and on the server.
public struct CoordinatedCall: Equatable, Sendable {
    /// Whether this user receives or places the call.
    public enum Direction: Sendable { case incoming, outgoing }

    /// The progress of the call on this device, from the first report to its end.
    public enum Phase: Equatable, Sendable {
        /// Incoming: known from a push, or not yet accepted by the system.
        case reported
        /// Incoming: ringing on this device.
        case ringing
        /// Incoming: the user answered, and the server has not confirmed it yet.
        case answering
        /// Outgoing: requested from the system and the server, or ringing on the other side.
        case placing
        /// Accepted, and joining the session.
        case connecting
        case active
        /// Put on hold by the system.
        case held
        /// Ended by the user, and not yet confirmed by the system.
        case ending
    }

    /// The call's id in CallKit.
    public let id: SystemCallID
    /// The call's id on the server. Nil for an outgoing call that the server has not created yet, and for an incoming
    /// call whose push contains no valid id.
    public internal(set) var callID: CallID?
    public let direction: Direction
    /// The other person; nil while the call is known only from a push.
    public internal(set) var person: Person?
    /// Whether the call was placed with video.
    public internal(set) var video: Bool
    /// The call as the SDK last reported it; nil while it is known only from a push, or only from this user's
    /// request.
    public internal(set) var call: Call?
    public internal(set) var phase: Phase
    public internal(set) var isMuted = false
    /// Whether this user wants to send video. While the call is held, none is sent.
    public internal(set) var sendsVideo: Bool
    /// Whether this device shares its screen, with or without the camera.
    var isSharing = false
    /// The video state that was last sent to the camera.
    var runsCamera: Bool
    /// The video state that was last sent to the server.
    var reportedVideo: Bool

    /// The id of the system's answer or start action, kept until the server confirms the answer or start; nil if there
    /// is none.
    var pending: ActionID?
    /// Whether the answer or the start was sent to the server.
    var isSent = false
    var isReportedConnected = false
    var hasTimer = false
    /// The phase in which the user ended the call; nil if the user has not.
    var endedIn: Phase?
    /// Whether the system has accepted a report of the call.
    var isKnownToSystem = false
    /// Whether the server was notified that this side has ended the call.
    var isEndSent = false

    init(id: SystemCallID, direction: Direction, person: Person?, video: Bool) {
        (self.id, self.direction, self.person, self.video) = (id, direction, person, video)
        phase = direction == .incoming ? .reported : .placing
        (sendsVideo, runsCamera, reportedVideo) = (video, video, video)
    }

    /// Whether the session of the call is being joined again after the connection was replaced.
    var isRejoining: Bool { call?.isRejoining ?? false }
    var isAccepted: Bool { call?.state == .joining || call?.state == .active }
    /// Whether to use the loudspeaker: with video, the phone is not at the ear.
    var usesSpeaker: Bool { video || sendsVideo }

    /// Whether the call carries audio in its current phase, or for a call that is ending, in the phase before.
    var wantsAudio: Bool {
        let phase = endedIn ?? phase
        return phase == .connecting || phase == .active
    }
}
