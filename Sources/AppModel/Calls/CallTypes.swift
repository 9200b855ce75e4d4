import Foundation

/// The id of a call in CallKit. For an incoming call it is the server's call id, so that a push and the server's
/// message refer to the same call.
public typealias SystemCallID = UUID

extension UUID {
    /// Converts the server's call id, 32 lowercase hexadecimal digits.
    public init?(callID: String) {
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        let letters = UInt8(ascii: "a")...UInt8(ascii: "f")
        guard callID.utf8.count == 32, callID.utf8.allSatisfy({ digits.contains($0) || letters.contains($0) }) else {
            return nil
        }
        var text = callID
        for place in [8, 13, 18, 23] { text.insert("-", at: text.index(text.startIndex, offsetBy: place)) }
        self.init(uuidString: text)
    }
}

/// The id of an action from the system. Each is fulfilled or failed exactly once.
public typealias ActionID = UInt64

/// The id of a push. Its completion must be called exactly once, after the call was reported to the system.
public typealias PushID = UInt64

/// The other person in a call.
public struct CallPerson: Equatable, Sendable {
    public var id: String
    public var name: String

    public init(id: String, name: String) { (self.id, self.name) = (id, name) }

    /// Shown instead of a caller's name while the call is known only from a push.
    public static let unknownName = "Confab"
}

/// The server's description of an incoming call.
public struct IncomingCallInfo: Equatable, Sendable {
    public var callID: String
    public var person: CallPerson
    public var video: Bool

    public init(callID: String, person: CallPerson, video: Bool) {
        (self.callID, self.person, self.video) = (callID, person, video)
    }
}

/// How a call ended: the server's reasons (`protocol/people.md` §12).
public enum CallEndReason: String, CaseIterable, Sendable {
    case hungUp, ended, declined, cancelled, missed, unanswered, busy, unreachable, failed, connectionLost
    case answeredElsewhere, declinedElsewhere, merged
}

/// The reason shown by the system for the end of a call. The raw values are CallKit's.
public enum SystemEndReason: Int, Equatable, Sendable {
    case failed = 1
    case remoteEnded, unanswered, answeredElsewhere, declinedElsewhere
}

extension CallEndReason {
    var forSystem: SystemEndReason {
        switch self {
        case .hungUp, .ended, .declined, .cancelled, .merged: .remoteEnded
        case .missed, .unanswered, .busy: .unanswered
        case .unreachable, .failed, .connectionLost: .failed
        case .answeredElsewhere: .answeredElsewhere
        case .declinedElsewhere: .declinedElsewhere
        }
    }
}

/// A call in the coordinator.
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
        /// Requested again from the server after the server restarted.
        case rejoining
        /// Ended by the user, and not yet confirmed by the system.
        case ending
    }

    /// The system's id.
    public let id: SystemCallID
    /// The server's id; nil until the server has created the outgoing call.
    public internal(set) var callID: String?
    public let direction: Direction
    /// The other person; nil while the call is known only from a push.
    public internal(set) var person: CallPerson?
    /// Whether the call was placed with video.
    public internal(set) var video: Bool
    public internal(set) var phase: Phase
    public internal(set) var isMuted = false
    /// Whether this side sends video while the call is not held.
    public internal(set) var sendsVideo: Bool
    /// Whether this device shares its screen, with or without the camera.
    var isSharing = false
    /// The video states last sent: whether the camera runs, and whether the server was notified of video.
    var runsCamera: Bool
    var toldVideo: Bool
    /// Whether the other person is temporarily disconnected.
    public internal(set) var isPartnerAway = false
    /// The number of devices that ring; nil until the server reports it.
    public internal(set) var ringingDevices: Int?

    /// The answer or start action that waits for the server.
    var pending: ActionID?
    /// Whether the answer or the start was sent to the server. For an answer, since the server's last restart.
    var isSent = false
    /// Whether the server has confirmed the call since its last restart.
    var isConfirmed = false
    /// Whether the media connection is up. A hold does not change it.
    var isConnected = false
    var isReportedConnected = false
    var hasJoined = false
    var hasTimer = false
    /// Whether both people called each other, so that the call needs no answer.
    var isMutual = false
    /// The phase in which the user ended the call.
    var endedIn: Phase?
    /// Whether the system has accepted a report of the call.
    var isKnownToSystem = false
    /// Whether the server was notified that this side has ended the call.
    var isEndSent = false

    init(id: SystemCallID, direction: Direction, person: CallPerson?, video: Bool) {
        (self.id, self.direction, self.person, self.video) = (id, direction, person, video)
        phase = direction == .incoming ? .reported : .placing
        (sendsVideo, runsCamera, toldVideo) = (video, video, video)
    }

    /// Whether to use the loudspeaker: with video, the phone is not at the ear.
    var usesSpeaker: Bool { video || sendsVideo }

    /// Whether the call carries audio in its current phase.
    var wantsAudio: Bool {
        let phase = endedIn ?? phase
        return phase == .connecting || phase == .active
    }
}
