import Confab

/// A tile of a room: a member with their video, or a shared screen.
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
    /// The quality of the member's connection to the server.
    public var quality = Session.Quality.good
    /// Whether the server paused the video for lack of bandwidth.
    public var isPaused = false

    public init(id: String, name: String) { (self.id, self.name) = (id, name) }
}

/// A person waiting to be admitted.
public struct WaitingPerson: Equatable, Identifiable, Sendable {
    public var id: String
    public var name: String

    public init(id: String, name: String) { (self.id, self.name) = (id, name) }
}

/// A request from the room screen to the SDK.
public enum RoomRequest: Equatable, Sendable {
    /// Joins a room. `video` is false if the camera stays closed until it is turned on. `routedOnly` is false if the
    /// user accepts that members can see each other's addresses.
    case join(String, name: String, password: String?, video: Bool, routedOnly: Bool = true)
    case cancel, leave
    case mute(Bool), camera(Bool), hand(Bool), shareScreen(Bool)
    case switchCamera
    case react(String)
    /// Sends a message. Answered by `sent` with the same id.
    case say(String, id: Int)
    /// Downloads a file. Answered by `file` with the same id.
    case download(String)
    case admit(String), deny(String)
    /// Performs a host's action on the person or the screen of a tile.
    case moderate(RoomAction, String)
    /// Opens the devices before joining. Without `video`, opens only the microphone.
    case preview(video: Bool)
    case closePreview
}

/// Why joining a room failed.
public enum RoomRefusal: Equatable, Sendable {
    case full
    case password(CallTrouble)
    /// A password was given, and the room has none.
    case noPassword
    /// The room is peer-to-peer, so its members see each other's addresses, which the user has not accepted.
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

/// An event of a room from the SDK.
public enum RoomEvent: Sendable {
    case waitingForHost
    case joined
    /// The connection was lost, or restored.
    case reconnecting(Bool)
    case refused(RoomRefusal)
    /// The name of a member whose media is being connected; nil once the media of all members has arrived.
    case connecting(name: String?)
    case members([RoomPerson])
    /// The people waiting in the lobby, if this user may admit them.
    case waitingPeople([WaitingPerson])
    /// This user's role, which determines the allowed actions.
    case role(RoomMember.Role)
    case speaker(String?)
    case firstFrame(String)
    /// A chat message. `isNew` is false if it was sent before this user joined.
    case message(sender: String, text: String, isOwn: Bool, file: ChatFile? = nil, isNew: Bool = true)
    /// The state of a file's download changed.
    case file(id: String, ChatFile.State)
    case fileRemoved(id: String)
    case sent(id: Int, Bool)
    /// A reaction; `id` is nil for this user's own.
    case reacted(id: String?, String)
    case mutedByHost
    case ownVideo((any VideoSource)?)
    case cameraFailed(CallTrouble)
    /// A request of the user failed. The room continues.
    case trouble(CallTrouble)
    case removed
    /// The room ended while the connection was lost, and another room has its name now.
    case otherRoom
    case failed(CallTrouble)
}

/// A reaction that is shown for a few seconds.
struct RoomReaction: Equatable, Sendable {
    var number: Int
    /// Nil for this user's own reaction.
    var member: String?
    var text: String
}
