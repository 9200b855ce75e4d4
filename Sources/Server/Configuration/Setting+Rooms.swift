import Signaling
import Wire

extension Setting {
    static let rooms: [Setting] = [
        Setting(
            "rooms.creation", \.rules.roomCreation, .choice,
            "everyone: opening a name that does not exist creates a room. operators: only operators create rooms.",
            applies: .atReload),
        Setting(
            "rooms.emptyGrace", \.rules.roomEmptyGrace, interval, "How long an empty room is kept.",
            "It lets a room survive if everyone loses the connection at the same time.", applies: .atReload),
        Setting(
            "rooms.passwordGrace", \.rules.roomPasswordGrace, interval,
            "How long an empty room with a password is kept, if longer than emptyGrace.",
            "Until then, nobody else can take its name.", applies: .atReload),
        Setting(
            "rooms.retention", \.rules.roomRetention, .duration(.seconds(1) ... .seconds(3650 * 86400)),
            "How long an empty persistent room is kept.",
            "After that, the room is deleted: its people may never return.", applies: .atReload),
        Setting(
            "rooms.capacity", \.rules.roomCapacity, .integer(1...Limits.routedRoom),
            "Default capacity of a routed room. The creator or a host can change it for their room.",
            "At most \(Limits.routedRoom), because everyone receives everyone else's video.", applies: .atReload),
        Setting(
            "rooms.meshCapacity", \.rules.meshRoomCapacity, .integer(1...Limits.meshRoom),
            "Default capacity of a mesh room. The creator or a host can change it for their room.",
            "At most \(Limits.meshRoom), because everyone sends their video to everyone else.", applies: .atReload),
        Setting(
            "rooms.maxRooms", \.rules.maxRooms, count, "Maximum rooms on this server.",
            "10,000 rooms use about 20 MB of memory, plus at most 160 MB for chat history.", applies: .atReload),
        Setting(
            "rooms.perPerson", \.rules.roomsPerPerson, count, "Maximum existing rooms created by one person.",
            "Keeps one person from taking all names.", applies: .atReload),
        Setting(
            "rooms.perAddress", \.rules.roomsPerAddress, count, "Maximum existing rooms created from one IP address.",
            applies: .atReload),
        Setting(
            "rooms.maxPersistent", \.rules.maxPersistentRooms, .integer(0...1_000_000),
            "Maximum persistent rooms created by people, at most half of maxRooms.",
            "These rooms stay when they are empty. The rest of maxRooms is for other rooms. 0: only operators create "
                + "persistent rooms.", applies: .atReload),
        Setting(
            "rooms.persistentPerAddress", \.rules.persistentRoomsPerAddress, .integer(0...1_000_000),
            "Maximum persistent rooms created from one IP address.",
            "A restart resets this count.", applies: .atReload),
        Setting(
            "rooms.addressShare", \.rules.roomAddressShare, .integer(1...100),
            "Maximum percentage of a room's places that people from one IP address can take.",
            "At least 2 places are kept for others, but rooms for 2 or 3 have no limit. It does not apply to the "
                + "address of the creator or of a host with a token, or to people whom a host admits. A class of 25 "
                + "behind one address fits if its teacher is at the same address. If not, set the capacity to 32. "
                + "100: no limit.", applies: .atReload),
        Setting(
            "rooms.lobby", \.rules.roomLobby, count, "Maximum people in the lobby of one room.",
            "Each person takes one place. Hosts see everyone who waits.", applies: .atReload),
        Setting(
            "rooms.lobbyPerAddress", \.rules.roomLobbyPerAddress, count,
            "Maximum people from one IP address in the lobby of one room.",
            "A class can knock at once, but it takes more than three addresses to fill a lobby.", applies: .atReload),
        Setting(
            "rooms.knocksPerMinute", \.rules.roomKnocks.perMinute, count,
            "Maximum knocks per minute at one room from one IP address.",
            "Every host is notified.", applies: .atReload),
        Setting(
            "rooms.knockPause", \.rules.roomKnockPause, .duration(.zero ... .seconds(86400)),
            "How long someone must wait to knock again after a host denied entry.", applies: .atReload),
        Setting(
            "rooms.passwordGuessesPerMinute", \.rules.roomPasswordGuesses.perMinute, count,
            "Maximum wrong passwords per minute from one IP address, for all rooms.",
            "Correct passwords do not count, so a whole school can join. Guessing becomes impractical.",
            applies: .atReload),
        Setting(
            "rooms.chatLines", \.rules.roomChatLines, .integer(0...1000),
            "Maximum messages in the chat history, which people who join later receive. 0: no history and no files.",
            "A file counts, and is deleted with its message.", applies: .atReload),
        Setting(
            "rooms.chatBytes", \.rules.roomChatBytes, .size(.kibibytes(1) ... .kibibytes(64)),
            "Maximum total size of the text in the chat history, in UTF-8.",
            "Files do not count. Kept small so that the history fits into the buffer for resuming.", applies: .atReload),
        Setting(
            "rooms.messagesPerSecond", \.rules.roomTalk.perSecond, rate,
            "Sustained rate: chat messages per second per person in one room.",
            "Counts all devices of the person, and continues if they leave and return. Everyone in the room receives "
                + "each message.", applies: .atReload),
        Setting(
            "rooms.messageBurst", \.rules.roomTalk.burst, rate,
            "Burst: chat messages that a person may send at once, above the sustained rate.", applies: .atReload),
        Setting(
            "rooms.gesturesPerSecond", \.rules.roomGestures.perSecond, rate,
            "Sustained rate: raised hands and reactions per second per person in one room.",
            "Counted in the same way as chat messages.", applies: .atReload),
        Setting(
            "rooms.gestureBurst", \.rules.roomGestures.burst, rate,
            "Burst: raised hands and reactions that a person may send at once, above the sustained rate.",
            applies: .atReload),
        Setting(
            "rooms.bans", \.rules.roomBans, .integer(1...10_000),
            "Maximum banned people per room, and maximum revoked tokens. Beyond it, the oldest entry is dropped.",
            "Bans by stand-in hosts have a second list of this size, kept until the room is empty.", applies: .atReload),
        Setting(
            "rooms.fileSize", \.rules.roomFileSize, .size(ByteCount(bytes: 0) ... .mebibytes(1024)),
            "Maximum size of a file in a room's chat. 0B: no files in rooms.", "At most 1 GiB.", applies: .atReload),
        Setting(
            "rooms.fileBytesPerRoom", \.rules.roomFileBytes, .size(.kibibytes(4) ... .mebibytes(1 << 20)),
            "Maximum total size of the files in one room. Each file is rounded up to blocks of 4 KiB.",
            "Includes files that are being uploaded.", applies: .atReload),
        Setting("rooms.filesPerRoom", \.rules.roomFiles, count, "Maximum files in one room.", applies: .atReload),
        Setting(
            "rooms.fileBytes", \.rules.fileBytes, .size(.kibibytes(4) ... .mebibytes(1 << 20)),
            "Maximum total size of the files in all rooms.", "They are in the data directory.", applies: .atReload),
        Setting(
            "rooms.fileBytesPerAddress", \.rules.fileBytesPerAddress, .size(.kibibytes(4) ... .mebibytes(1 << 20)),
            "Maximum total size of the files in all rooms sent from one IP address (per /64 for IPv6).",
            "Includes uploads that were permitted but have not started, so that one address cannot use up everyone's "
                + "space.", applies: .atReload),
        Setting(
            "rooms.uploads", \.rules.roomUploads, count, "Maximum concurrent uploads per person.",
            "Counts all devices and all rooms. Started uploads reserve space.", applies: .atReload),
        Setting(
            "rooms.unfinishedFileBytes", \.rules.unfinishedFileBytes, .size(.kibibytes(4) ... .mebibytes(1 << 20)),
            "Maximum total size of pending and running uploads in all rooms.",
            "One file is always allowed.", applies: .atReload),
        Setting(
            "rooms.unfinishedFileBytesPerAddress", \.rules.unfinishedFileBytesPerAddress,
            .size(.kibibytes(4) ... .mebibytes(1 << 20)),
            "Maximum total size of pending and running uploads from one IP address (per /64 for IPv6).",
            "One file is always allowed. The default fits three files of 20 MiB. It is small so that slow uploads "
                + "from a few addresses cannot use up everyone's space.", applies: .atReload),
        Setting(
            "rooms.uploadStart", \.rules.roomUploadStart, .duration(.milliseconds(10) ... .seconds(3600)),
            "How long a permitted upload may take to start.",
            "After that, the reserved space is released.", applies: .atReload),
        Setting(
            "rooms.uploadTime", \.rules.roomUploadTime, interval, "Maximum duration of an upload.",
            "After that, the reserved space is released.", applies: .atReload),
        Setting(
            "rooms.uploadRate", \.rules.roomUploadRate, .size(.kibibytes(1) ... .mebibytes(1024)),
            "Minimum speed of an upload, per second, after uploadStart has passed.",
            "A slower upload is canceled, so that a small file does not hold its space for ten minutes. Even slow "
                + "mobile connections upload at twice this speed.", applies: .atReload),
        Setting(
            "rooms.fileLifetime", \.rules.roomFileLifetime, .duration(.milliseconds(10) ... .seconds(365 * 86400)),
            "Maximum age of a file. Files are also deleted when their room ends and when the server restarts.",
            "Otherwise files in persistent rooms would stay forever.", applies: .atReload),
    ]
}
