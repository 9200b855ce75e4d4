import Confab

/// A member of a room, with the picture that is shown.
public struct RoomPerson: Sendable {
    public var id: String
    public var name: String
    /// Nil without a camera, or while it is off.
    public var video: (any VideoSource)?
    public var aspect: Double?
    public var isScreen = false
    public var isMuted = false
    public var hasHandUp = false
    public var isAway = false
    public var role = RoomMember.Role.guest
    public var isHost: Bool { role == .host }
    /// How well their pictures and sound reach the server.
    public var quality = Session.Quality.good
    /// Whether the server sends no video, because the network does not carry it.
    public var isPaused = false

    public init(id: String, name: String) { (self.id, self.name) = (id, name) }
}

/// A person who waits to be let in.
public struct WaitingPerson: Equatable, Identifiable, Sendable {
    public var id: String
    public var name: String

    public init(id: String, name: String) { (self.id, self.name) = (id, name) }
}

public enum RoomRequest: Equatable, Sendable {
    /// `video` is false if the camera stays closed until it is turned on. `routedOnly` is false if the person accepts that the
    /// members of the room see each other's addresses.
    case join(String, name: String, password: String?, video: Bool, routedOnly: Bool = true)
    case cancel, leave
    case mute(Bool), camera(Bool), hand(Bool), shareScreen(Bool)
    case switchCamera
    case react(String)
    /// Answered by `sent` with the same id.
    case say(String, id: Int)
    /// Answered by `file` with the same id.
    case download(String)
    case admit(String), deny(String)
    /// About the person or the screen of a tile.
    case moderate(RoomAction, String)
    /// Opens the devices before joining. Without `video`, only the microphone.
    case preview(video: Bool)
    case closePreview
}

/// Why a room was not joined.
public enum RoomRefusal: Equatable, Sendable {
    case full
    case password(CallTrouble)
    /// A password was given, and the room has none.
    case noPassword
    /// Audio and video go from device to device, which the person has not accepted.
    case addressesAreSeen
    case other(CallTrouble)

    init(_ error: ConfabError) {
        self =
            switch error.code {
            case .roomFull: .full
            case .roomPassword: .password(CallTrouble(error))
            case .roomNoPassword: .noPassword
            case .roomMesh: .addressesAreSeen
            default: .other(CallTrouble(error))
            }
    }
}

public enum RoomEvent: Sendable {
    case waitingForHost
    case joined
    /// The connection is lost, or it is back.
    case reconnecting(Bool)
    case refused(RoomRefusal)
    /// Connecting media with a member; nil if all have arrived.
    case connecting(name: String?)
    case members([RoomPerson])
    /// People who wait, if this person may let them in.
    case waitingPeople([WaitingPerson])
    /// What this person may do.
    case role(RoomMember.Role)
    case speaker(String?)
    case firstFrame(String)
    /// Not new: it was written before this person joined.
    case message(sender: String, text: String, isOwn: Bool, file: ChatFile? = nil, isNew: Bool = true)
    /// The download of a file began, goes on, or is over.
    case file(id: String, ChatFile.State)
    case fileRemoved(id: String)
    case sent(id: Int, Bool)
    /// `id` is nil for this person's own reaction.
    case reacted(id: String?, String)
    case mutedByHost
    case ownVideo((any VideoSource)?)
    case cameraFailed(CallTrouble)
    /// Something that the person asked for did not work. The room goes on.
    case trouble(CallTrouble)
    case removed
    /// The room ended while the connection was lost, and another room has its name now.
    case otherRoom
    case failed(CallTrouble)
}

/// A reaction that is shown for a moment.
struct RoomReaction: Equatable, Sendable {
    var number: Int
    /// Nil for this person's own.
    var member: String?
    var text: String
}
