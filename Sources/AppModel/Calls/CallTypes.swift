import Foundation

/// A call of the system's call screen. For an incoming call it is the server's call id, so that a push and a message about
/// the same call are about one call.
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

/// An action that the system asked for. It is fulfilled or failed exactly once.
public typealias ActionID = UInt64

/// A push whose completion has to be called exactly once, after the call was reported to the system.
public typealias PushID = UInt64

/// The person at the other end.
public struct CallPerson: Equatable, Sendable {
    public var id: String
    public var name: String

    public init(id: String, name: String) { (self.id, self.name) = (id, name) }

    /// Stands for the name of somebody of whom only a push told.
    public static let unknownName = "Confab"
}

/// What the server says about a call that rings here.
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

/// How a call ended, as the system shows it. The raw values are the system's.
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

/// A call as the coordinator knows it.
public struct CoordinatedCall: Equatable, Sendable {
    public enum Direction: Sendable { case incoming, outgoing }

    public enum Phase: Equatable, Sendable {
        /// Incoming: known from a push, or the system has not yet accepted the report.
        case reported
        /// Incoming: rings here.
        case ringing
        /// Incoming: the person answered, and the server has not yet agreed.
        case answering
        /// Outgoing: asked of the system and the server, or rings there.
        case placing
        /// Accepted: joining the session.
        case connecting
        case active
        /// Paused by the system.
        case held
        /// After a restart of the server: asked to be in the call again.
        case rejoining
        /// The person ended it, and the system has not yet agreed.
        case ending
    }

    /// The system's id.
    public let id: SystemCallID
    /// The server's id; nil until an outgoing call exists there.
    public internal(set) var callID: String?
    public let direction: Direction
    /// The other person; nil while only a push told about the call.
    public internal(set) var person: CallPerson?
    /// Whether it was placed with video.
    public internal(set) var video: Bool
    public internal(set) var phase: Phase
    public internal(set) var isMuted = false
    /// Whether this side sends video, unless the call is held.
    public internal(set) var sendsVideo: Bool
    /// Whether the other person sees this device's screen, whether the camera is on or not.
    var isSharing = false
    /// Whether the camera was told to run, and whether the server was told that there is video.
    var runsCamera: Bool
    var toldVideo: Bool
    /// Whether the other person's connection is lost for now.
    public internal(set) var isPartnerAway = false
    /// The number of devices that ring; nil until the server says it.
    public internal(set) var ringingDevices: Int?

    /// An answer or start action that waits for the server.
    var pending: ActionID?
    /// Whether the answer or the start was sent to the server, an answer since the last restart.
    var isSent = false
    /// Whether the server confirmed the call since the last restart.
    var isConfirmed = false
    /// Whether the media connection stands, which a hold does not change.
    var isConnected = false
    var isReportedConnected = false
    var hasJoined = false
    var hasTimer = false
    /// Whether the other person called too, so that nobody has to answer.
    var isMutual = false
    /// The phase in which the person ended it.
    var endedIn: Phase?
    /// Whether the system has accepted a report of the call.
    var isKnownToSystem = false
    /// Whether the server was told that this side is done with the call.
    var isEndSent = false

    init(id: SystemCallID, direction: Direction, person: CallPerson?, video: Bool) {
        (self.id, self.direction, self.person, self.video) = (id, direction, person, video)
        phase = direction == .incoming ? .reported : .placing
        (sendsVideo, runsCamera, toldVideo) = (video, video, video)
    }

    /// Whether the phone is not at the ear.
    var usesSpeaker: Bool { video || sendsVideo }

    /// Whether the call may carry sound now.
    var wantsAudio: Bool {
        let phase = endedIn ?? phase
        return phase == .connecting || phase == .active
    }
}
