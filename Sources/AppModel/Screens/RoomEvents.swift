import Confab

/// A tile in a room: a member with their video, or a shared screen.
public struct RoomPerson: Sendable {
    public var id: String
    public var member: RoomMember
    /// The video from the camera or the screen; nil if it is off or has not arrived.
    public var video: (any VideoSource)?
    public var aspect: Double?
    public var isScreen = false
    public var isMuted = false
    /// The quality of the stream as it arrives at the server.
    public var quality = Session.Quality.good
    /// Whether the server paused the video for lack of bandwidth.
    public var isPaused = false

    public init(id: String, member: RoomMember) { (self.id, self.member) = (id, member) }

    public var name: String { member.name }
    var role: RoomMember.Role { isScreen ? .guest : member.role }
    public var isHost: Bool { role == .host }
    var hasHandUp: Bool { !isScreen && member.hasRaisedHand }
    var isAway: Bool { !isScreen && member.presence == .reconnecting }
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
    /// Downloads a file. Answered by `file` with its id.
    case download(SharedFile)
    case admit(ConnectionID), deny(ConnectionID)
    /// Performs a host's action on a person or their screen.
    case moderate(RoomAction, ConnectionID)
    /// Opens the devices before joining. Without `video`, opens only the microphone.
    case preview(video: Bool)
    case closePreview
    /// Accepts or refuses to be in recordings or broadcasts.
    case consent(RoomConsent, Bool)
}

/// An event in the room, or an event that concerns this device's media, for the room screen.
public enum RoomEvent: Sendable {
    case waitingForHost
    case joined
    /// True when the connection was lost, false when it was restored.
    case reconnecting(Bool)
    case refused(ConfabError)
    /// The name of a member whose media is being connected; nil once the media of all members has arrived.
    case connecting(name: String?)
    case members([RoomPerson])
    /// The people waiting in the lobby, if this user may admit them.
    case waitingPeople([RoomKnock])
    /// This user's role, which determines the allowed actions.
    case role(RoomMember.Role)
    case speaker(String?)
    case firstFrame(String)
    /// A chat message. `isNew` is false if it was sent before this user joined.
    case said(RoomMessage, isOwn: Bool = false, isNew: Bool = true)
    /// The state of a file's download changed.
    case file(RoomFileID, ChatFile.State)
    case fileRemoved(RoomFileID)
    case sent(id: Int, Bool)
    /// A reaction; `id` is nil for this user's own.
    case reacted(id: String?, String)
    case mutedByHost
    /// Whether the room is being recorded or broadcast live has changed, or whether the user must answer.
    case capture(RoomConsent, RoomCapture)
    case ownVideo((any VideoSource)?)
    case cameraFailed(ConfabError)
    /// A request from the user failed. The room continues.
    case trouble(ConfabError)
    case ended(RoomEnding, ConfabError? = nil)
}

/// A reaction that is shown for a few seconds.
struct RoomReaction: Equatable, Sendable {
    var number: Int
    /// The tile id of the person who reacted; nil for this user's own reaction.
    var member: String?
    var text: String
}
