import Wire

/// The limits and timeouts of the rules, with the defaults from the protocol. The server's configuration contains one value
/// of this type, which the configuration keys change.
public struct Rules: Equatable, Sendable {
    // Client connections.
    public var resumeGrace: Duration = .seconds(30)
    public var pingInterval: Duration = .seconds(10)
    public var replay = Link.Bounds()
    /// The budget for a client's requests. Negotiation messages have a separate budget, because a client sends dozens of ICE
    /// candidates at once.
    public var verbs = Budget.Rate(perSecond: 20, burst: 100)
    /// The budget for the requests of one person on all devices.
    public var personVerbs = Budget.Rate(perSecond: 60, burst: 300)
    /// Maximum number of client connections of one person at the same time. A further connection closes the oldest with 4409.
    public var connectionsPerPerson = 16
    /// The minimum time between two updates of a person's state to the person's other devices.
    public var ownPresenceInterval: Duration = .milliseconds(200)
    public var negotiations = Budget.Rate(perSecond: 50, burst: 500)
    /// A negotiation message costs one token, plus one for each full block of this many bytes, because session
    /// descriptions are large and use the receiver's bandwidth.
    public var bytesPerNegotiation = 4096
    /// The budget for messages that are rejected because another budget is exhausted. If a client exceeds this budget,
    /// too, its connection is closed with 4429.
    public var refusals = Budget.Rate(perSecond: 20, burst: 200)
    /// The budget for all messages of a client, including duplicates and acknowledgements. It is the sum of `verbs`
    /// and `negotiations`, plus a reserve. The burst also includes one replay.
    public var messages: Budget.Rate {
        Budget.Rate(
            perSecond: verbs.perSecond + negotiations.perSecond + 50,
            burst: verbs.burst + negotiations.burst + Double(replay.messages) + 200
        )
    }
    /// The budget for the reports that one person makes about others: 10 at once, then one every six minutes.
    public var reports = Budget.Rate(perSecond: 10.0 / 3600, burst: 10)
    /// Maximum size of a message. The gateway enforces this limit, and `welcome` announces it.
    public var messageSize = Limits.message
    public var descriptionSize = Limits.description
    /// The number of malformed messages that a client may send per minute. Further ones close its socket with 4400.
    public var malformedPerMinute = 10
    /// Maximum number of sessions that one client connection may be in at the same time.
    public var sessionsPerClient = 16
    /// The budget for a client's `session.join` and `room.join` requests, because each join and the departure after it cost a
    /// message to every member of the session or room.
    public var joins = Budget.Rate(perSecond: 2, burst: 100)

    // Sessions.
    /// Maximum number of connections in one session, as in OpenTok.
    public var connectionsPerSession = 15_000
    /// Maximum number of connections in all sessions of one project. A project may have a lower maximum.
    public var connectionsPerProject = 20_000
    /// Maximum number of revoked tokens in the sessions of one project. Each is kept until it expires.
    public var revocationsPerProject = 20_000
    /// The budget for the removals of an application's server, and for the mutes of whole sessions that it begins and ends,
    /// because each is stored and has an entry in the audit log. At once, an application can remove everyone from its sessions.
    public var projectDecisions = Budget.Rate(perSecond: 1, burst: 20_000)
    public var streamsPerConnection = 8
    /// Maximum size of one page of a session's roster, in bytes: half of the replay buffer, so that a client that
    /// loses its connection while pages are on their way can resume.
    public var rosterPage = 32 * 1024
    /// In a session with more members than this, further joins are announced in pages, several at once, to members who
    /// have not acknowledged enough of the earlier messages.
    public var largeSession = 100
    /// The budget for messages to all members of one session, in bytes: a signal costs its size for each member. At this rate, a
    /// session of 2,000 members can exchange 8 short text messages per second.
    public var sessionTraffic = Budget.Rate(perSecond: 4 * 1024 * 1024, burst: 4 * 1024 * 1024)
    /// How long a session remembers its largest number of members. Joins that do not exceed that number must follow
    /// departures, so they are charged. If the time were longer, the participants of a lecture would have to wait when
    /// they return from a break.
    public var sessionSizeMemory: Duration = .seconds(300)
    public var reportLines = 20
    /// How long after the end of a match a person can report the partner.
    public var reportWindow: Duration = .seconds(60)
    /// Whether an operator's program judges samples of the cameras in video chats of the roulette.
    public var checksSamples = false
    /// The time between two samples of a camera.
    public var sampleInterval: Duration = .seconds(10)

    /// How long a session stays muted after its last member left, or after a restart. Members who join after that
    /// start unmuted.
    public var muteGrace: Duration = .seconds(600)

    // Media.
    /// Whether a media plane is available for routed sessions.
    public var routesMedia = false
    /// How long the media of two clients of a relayed session may take to connect directly. After that, the whole
    /// session switches to routed media.
    public var relayedFallback: Duration = .seconds(8)

    // Archives.
    /// Whether a recorder is available.
    public var recordsSessions = false
    /// Whether archives can be composed into one file.
    public var composesArchives = false
    /// Whether members must accept before their streams are recorded.
    public var recordingConsent = RecordingConsent.notify
    /// Whether moderators may start and stop archives.
    public var moderatorsMayRecord = false
    /// How long before the recording the members of a session are notified of it.
    public var recordingNotice: Duration = .seconds(1)
    /// Maximum number of archives that are recorded at the same time on this server.
    public var maxRunningArchives = 20
    /// Maximum number of streams that an application can select for an archive, as in OpenTok.
    public var streamsPerArchive = 50
    /// Maximum recorded time of an archive, without its pauses, as in OpenTok.
    public var maxArchiveTime: Duration = .seconds(14_400)
    /// Maximum time from the start to the end of an archive, as in OpenTok.
    public var maxArchiveAge: Duration = .seconds(43_200)
    /// How long an archive waits for its first stream, and how long it waits after the last connection has left.
    public var archiveWait: Duration = .seconds(60)
    /// After how long a session that is always recorded tries again to start an archive.
    public var archiveRetry: Duration = .seconds(300)
    /// How long an archive stays paused before it stops, as in OpenTok.
    public var maxArchivePause: Duration = .seconds(3600)

    // Broadcasts. Consent and notice are those of archives.
    /// Whether a compositor is available.
    public var broadcastsSessions = false
    /// Maximum number of broadcasts that run at the same time on this server.
    public var maxBroadcasts = 2
    /// How long a broadcast waits after the last connection has left.
    public var broadcastWait: Duration = .seconds(60)

    // WHIP and WHEP resources.
    public var resources = 2000
    public var resourcesPerAddress = 100
    /// Maximum number of WHIP and WHEP resources that exist at the same time with one token.
    public var resourcesPerToken = 500
    /// How long a request to create a resource or to restart its ICE may take to be answered.
    public var resourceAnswer: Duration = .seconds(5)
    /// How long a resource may exist without connected media, after it was created or after its media was lost.
    public var resourceConnect: Duration = .seconds(30)

    // Roulette.
    public var interestWait: Duration = .seconds(5)
    public var rematchWait: Duration = .seconds(10)
    public var skipWindow: Duration = .seconds(5)
    public var skipPeriod: Duration = .seconds(60)
    public var skipsBeforeWait = 3
    public var firstSkipWait: Duration = .seconds(2)
    public var longestSkipWait: Duration = .seconds(60)
    public var maxInterests = 10
    public var maxBlocks = 1000
    public var entriesPerAddress = 200
    public var candidatesPerAttempt = 32
    public var retryInterval: Duration = .seconds(1)
    /// How long the two people of a possible match may take to answer in a cluster. Who does not may be on a node that has died.
    public var reservationTime: Duration = .seconds(2)
    public var streamTimeout: Duration = .seconds(10)
    public var rouletteMediaMode = MediaMode.routed
    /// The media mode of match sessions: `rouletteMediaMode`, or relayed if this server does not route media.
    public var matchMediaMode: MediaMode { routesMedia ? rouletteMediaMode : .relayed }
    /// How long the clients of a match can use its tokens to join its session. The match itself may last longer.
    public var matchTokenLifetime: Duration = .seconds(24 * 3600)
    /// How long an identity without a connected device stays in memory. This is longer than any skip penalty or report window.
    public var personIdle: Duration = .seconds(600)

    /// Maximum number of identities in memory that have no connected device. Beyond that, the identities that have been absent
    /// longest are evicted. Their skips, recent location and unanswered calls are then forgotten. Most identities take about 2
    /// KB, so the limit is about 100 MB. That is enough for 80 people per second who connect and disconnect.
    public var absentPeople = 50_000

    // Several nodes. Without a cluster, these have no effect.
    /// How long a client that was redirected to a node waits for its former node to release its person.
    public var placeWait: Duration = .seconds(2)
    /// How long a client that asked for a node that does not answer waits on another one until the life of that node is over.
    public var lostNodeWait: Duration = .seconds(5)
    /// How long a client that asked for a draining node may be idle there. It was redirected to a room, session or call, and joins it
    /// immediately, but its previous node may take ``placeWait`` to release its person.
    public var newcomerWait: Duration = .seconds(5)
    /// How often the node of a client that waits asks the registry again.
    public var placeRetry: Duration = .milliseconds(200)
    /// How long a person without devices, who was only looked up, stays in memory. Until then, the person's devices are sent to
    /// this node, so it is short: only as long as it takes to place a call.
    public var clusterPersonIdle: Duration = .seconds(1)
    /// How long another node may take to answer a client's request before the request fails.
    public var distantRequestTimeout: Duration = .seconds(10)
    /// How long a call that this node continues rings for a callee who is on another node. It is long enough for a device that was
    /// accepting the call when its former node died: the device reconnects, and is redirected to this node.
    public var calleeWait: Duration = .seconds(5)
    /// How long a stranger waits in the pool of their own node before waiting in the hall.
    public var localWait: Duration = .milliseconds(300)
    /// Maximum of `localWait` while media can cross to other nodes, because then few strangers have to be redirected. It is not zero: each
    /// entry in the hall takes letters, and on a busy node most strangers meet within this time.
    public var spanningHallWait: Duration = .milliseconds(25)
    /// The pause before a stranger who could not be sent there tries again.
    public var hallRetry: Duration = .seconds(1)
    /// How often a stranger who waits in the pool of another node asks where the hall is, and sends the entry again.
    public var hallRenewal: Duration = .seconds(10)
    /// How long a node remains the one where strangers wait after nobody waits there anymore.
    public var hallLinger: Duration = .seconds(5)

    // People nearby.
    /// Maximum number of devices per person.
    public var devicesPerPerson = 10
    /// Maximum number of contacts per person.
    public var maxContacts = 500
    public var linkCodeLifetime: Duration = .seconds(300)
    /// The budget for creating pairing codes, per person. It is enough for a page that creates a code whenever it is
    /// opened.
    public var linkCodes = Budget.Rate(perMinute: 10)
    /// The budget for trying pairing codes, per address.
    public var linkGuesses = Budget.Rate(perMinute: 10)
    /// Maximum plausible travel speed. A location is rejected if the person would have had to move faster.
    public var fastestKilometersPerHour = 1000
    /// The minimum time between two updates of a watched page of people nearby.
    public var nearbyInterval: Duration = .seconds(1)
    /// The budget for pages of people nearby, per person on all devices: 30 at once, then one every two seconds. Computing a
    /// page takes at most half a millisecond, so one core can serve four thousand people who request pages constantly.
    public var nearbyPages = Budget.Rate(perSecond: 0.5, burst: 30)
    /// Maximum number of watched pages to refresh per second, for all people together.
    public var nearbyRefreshesPerSecond = 500

    // Calls.
    public var ringTimeout: Duration = .seconds(45)
    /// How long both people may take to join the session after a call was accepted.
    public var joinTimeout: Duration = .seconds(30)
    public var callMediaMode = MediaMode.routed
    /// The media mode of call sessions: `callMediaMode`, or relayed if this server does not route media.
    public var callSessionMode: MediaMode { routesMedia ? callMediaMode : .relayed }
    /// The budget for calls that one person places.
    public var callsPlaced = Budget.Rate(perMinute: 6)
    /// The budget for incoming calls that ring, per person.
    public var ringsReceived = Budget.Rate(perMinute: 20)
    /// After this number of calls to one person within `unsuccessfulCallPeriod` that were not answered, or were
    /// declined or canceled, the caller must wait for another such period before calling that person again.
    public var unsuccessfulCallLimit = 3
    public var unsuccessfulCallPeriod: Duration = .seconds(600)

    // Rooms.
    /// Who may create rooms.
    public var roomCreation = RoomCreation.everyone
    /// How long an empty room is kept, so that it survives if everyone loses their connection at once.
    public var roomEmptyGrace: Duration = .seconds(60)
    /// How long an empty room with a password is kept.
    public var roomPasswordGrace: Duration = .seconds(600)
    /// How long an empty persistent room is kept. It is limited, because the room's people may never return.
    public var roomRetention: Duration = .seconds(365 * 86400)
    /// The capacity of a routed room, unless its creator specifies another.
    public var roomCapacity = 25
    /// The capacity of a mesh room, unless its creator specifies another. It is the same as in PerchRTC.
    public var meshRoomCapacity = 3
    /// Maximum number of rooms on this server. Each uses about 2 KB plus its chat.
    public var maxRooms = 10_000
    /// Maximum number of existing rooms created by one person, and maximum number created from one address.
    public var roomsPerPerson = 10
    public var roomsPerAddress = 200
    /// Maximum number of persistent rooms created by people, in total and per address.
    public var maxPersistentRooms = 5000
    public var persistentRoomsPerAddress = 50
    /// Maximum percentage of a room's places that people from one address may take. Does not apply to people at an
    /// owner's address. In a room that cannot have owners, it does not apply to people at a host's address.
    public var roomAddressShare = 80
    /// The budgets for joins that follow departures: one for each person in each room, and one for each address in
    /// each room. A room of 100 people behind one address may return from a break at once.
    public var roomReturns = Budget.Rate(perSecond: 0.5, burst: 20)
    public var roomReturnsPerAddress = Budget.Rate(perSecond: 1, burst: 100)
    /// Maximum number of people waiting in a room's lobby, in total and from one address.
    public var roomLobby = 100
    public var roomLobbyPerAddress = 30
    /// The budget for knocks at one room, per address. Knocks are limited because each notifies every host.
    public var roomKnocks = Budget.Rate(perMinute: 60)
    /// How long a person who was turned away by a host must wait before the next knock.
    public var roomKnockPause: Duration = .seconds(60)
    /// The budget for wrong passwords, per address, for all rooms.
    public var roomPasswordGuesses = Budget.Rate(perMinute: 10)
    /// Maximum number of chat lines that people who join later receive.
    public var roomChatLines = 100
    /// Maximum total size of the text of these lines, in bytes. It is a quarter of the replay buffer, because
    /// `room.joined`, which contains the lines, should fit into that buffer.
    public var roomChatBytes = 16 * 1024
    /// The budget for chat messages, for each person in each room.
    public var roomTalk = Budget.Rate(perSecond: 2, burst: 10)
    /// The budget for raised hands and reactions, for each person in each room.
    public var roomGestures = Budget.Rate(perSecond: 2, burst: 10)
    /// Maximum size of a file in a room's chat in bytes; zero disables files. Files are stored on disk.
    public var roomFileSize = 20 * 1024 * 1024
    /// Maximum total size of the files in one room, in bytes.
    public var roomFileBytes = 200 * 1024 * 1024
    /// Maximum number of files in one room.
    public var roomFiles = 100
    /// Maximum total size of the files in all rooms, in bytes.
    public var fileBytes = 2 * 1024 * 1024 * 1024
    /// Maximum total size of the files from one address, in bytes.
    public var fileBytesPerAddress = 256 * 1024 * 1024
    /// Maximum number of files that one person sends at the same time, in all rooms and on all devices.
    public var roomUploads = 3
    /// Maximum total size in bytes of uploads that are permitted or in progress, in all rooms and from one address.
    /// The limit per address is enough for three files of the maximum size. It is a sixteenth of the total, so that a
    /// few addresses cannot keep everyone else from sending.
    public var unfinishedFileBytes = 1024 * 1024 * 1024
    public var unfinishedFileBytesPerAddress = 64 * 1024 * 1024
    /// How long a person has to start an upload.
    public var roomUploadStart: Duration = .seconds(30)
    /// Maximum time to complete an upload.
    public var roomUploadTime: Duration = .seconds(600)
    /// Minimum rate of an upload in bytes per second, after an initial `roomUploadStart`.
    public var roomUploadRate = 32 * 1024
    /// How long a file is kept, unless its room ends earlier.
    public var roomFileLifetime: Duration = .seconds(86400)
    /// Maximum number of banned people per room. Beyond it, the oldest ban is dropped.
    public var roomBans = 1000

    public init() {}

    /// Returns how long an upload of this size may take.
    func uploadTime(of size: Int) -> Duration {
        min(roomUploadTime, roomUploadStart + .seconds(Double(size) / Double(max(1, roomUploadRate))))
    }

    /// Whether rooms accept files. A file is kept only as long as its line in the chat, so without chat lines there are
    /// no files.
    var takesRoomFiles: Bool { roomFileSize > 0 && roomChatLines > 0 }
}

/// Whose streams an archive contains.
public enum RecordingConsent: String, Sendable, Equatable, CaseIterable {
    /// The streams of everyone. Members are notified.
    case notify
    /// The streams of members who accepted.
    case ask
}

/// Who may create rooms.
public enum RoomCreation: String, Sendable, Equatable, CaseIterable {
    /// Anyone can create a room by joining with a name that no room has yet.
    case everyone
    /// Only the operators of the server.
    case operators
}
