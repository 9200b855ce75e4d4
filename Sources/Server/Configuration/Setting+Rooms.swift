import Signaling
import Wire

extension Setting {
    private static let count = Format<Int>.integer(1...1_000_000)
    private static let rate = Format<Double>.whole(1...1_000_000)

    static let rooms: [Setting] = [
        Setting(
            "rooms.creation", \.rules.roomCreation, .choice,
            "everyone: opening a name that does not exist creates a room. operators: only operators create rooms.",
            applies: .atReload),
        Setting(
            "rooms.emptyGrace", \.rules.roomEmptyGrace, .duration(.milliseconds(10) ... .seconds(86400)),
            "How long a room without people is kept.", applies: .atReload),
        Setting(
            "rooms.passwordGrace", \.rules.roomPasswordGrace, .duration(.milliseconds(10) ... .seconds(86400)),
            "How long a room with a password is kept without people, if that is longer.", applies: .atReload),
        Setting(
            "rooms.retention", \.rules.roomRetention, .duration(.seconds(1) ... .seconds(3650 * 86400)),
            "How long a persistent room without people is kept.", applies: .atReload),
        Setting(
            "rooms.capacity", \.rules.roomCapacity, .integer(1...Limits.routedRoom),
            "People that fit into a routed room, unless its creator or a host sets another number.", applies: .atReload),
        Setting(
            "rooms.meshCapacity", \.rules.meshRoomCapacity, .integer(1...Limits.meshRoom),
            "People that fit into a mesh room, unless its creator or a host sets another number.", applies: .atReload),
        Setting("rooms.maxRooms", \.rules.maxRooms, count, "Maximum rooms on this server.", applies: .atReload),
        Setting(
            "rooms.perPerson", \.rules.roomsPerPerson, count, "Maximum rooms that one person has created.",
            applies: .atReload),
        Setting(
            "rooms.perAddress", \.rules.roomsPerAddress, count,
            "Maximum rooms that the people of one IP address created.",
            applies: .atReload),
        Setting(
            "rooms.maxPersistent", \.rules.maxPersistentRooms, .integer(0...1_000_000),
            "Maximum rooms that people created and that stay when they are empty, at most half of maxRooms.",
            applies: .atReload),
        Setting(
            "rooms.persistentPerAddress", \.rules.persistentRoomsPerAddress, .integer(0...1_000_000),
            "Maximum of these that the people of one IP address created.", applies: .atReload),
        Setting(
            "rooms.addressShare", \.rules.roomAddressShare, .integer(1...100),
            "Maximum percentage of a room's places for people of one IP address without a host.", applies: .atReload),
        Setting(
            "rooms.lobby", \.rules.roomLobby, count, "Maximum people who wait to be let into one room.",
            applies: .atReload),
        Setting(
            "rooms.lobbyPerAddress", \.rules.roomLobbyPerAddress, count,
            "Maximum people of one IP address who wait to be let into one room.", applies: .atReload),
        Setting(
            "rooms.knocksPerMinute", \.rules.roomKnocks.perMinute, count,
            "Times per minute that the people of one IP address may ask to be let into one room.", applies: .atReload),
        Setting(
            "rooms.refusal", \.rules.roomRefusal, .duration(.zero ... .seconds(86400)),
            "How long a person whom a host did not let in must wait before asking again.", applies: .atReload),
        Setting(
            "rooms.passwordGuessesPerMinute", \.rules.roomPasswordGuesses.perMinute, count,
            "Wrong passwords that one IP address may try per minute.", applies: .atReload),
        Setting(
            "rooms.chatLines", \.rules.roomChatLines, .integer(0...1000),
            "Maximum chat messages that people who join later receive. A file is deleted with its message. 0: no files.",
            applies: .atReload),
        Setting(
            "rooms.chatBytes", \.rules.roomChatBytes, .size(.kibibytes(1) ... .kibibytes(64)),
            "Maximum size of these messages, in JSON.", applies: .atReload),
        Setting(
            "rooms.messagesPerSecond", \.rules.roomTalk.perSecond, rate,
            "Sustained rate: chat messages per second of one person in one room.", applies: .atReload),
        Setting(
            "rooms.messageBurst", \.rules.roomTalk.burst, rate,
            "Burst: chat messages that a person may send at once, above the sustained rate.", applies: .atReload),
        Setting(
            "rooms.gesturesPerSecond", \.rules.roomGestures.perSecond, rate,
            "Sustained rate: raised hands and reactions per second of one person in one room.", applies: .atReload),
        Setting(
            "rooms.gestureBurst", \.rules.roomGestures.burst, rate,
            "Burst: raised hands and reactions that a person may show at once, above the sustained rate.",
            applies: .atReload),
        Setting(
            "rooms.bans", \.rules.roomBans, .integer(1...10_000),
            "Maximum banned people of one room, and revoked tokens. The oldest entry is dropped.", applies: .atReload),
        Setting(
            "rooms.fileSize", \.rules.roomFileSize, .size(ByteCount(bytes: 0) ... .mebibytes(1024)),
            "Maximum bytes of a file in a room's chat. 0B: rooms take no files.", applies: .atReload),
        Setting(
            "rooms.fileBytesPerRoom", \.rules.roomFileBytes, .size(.kibibytes(4) ... .mebibytes(1 << 20)),
            "Maximum bytes of all files in one room. Each takes blocks of 4 KiB.", applies: .atReload),
        Setting("rooms.filesPerRoom", \.rules.roomFiles, count, "Maximum files in one room.", applies: .atReload),
        Setting(
            "rooms.fileBytes", \.rules.fileBytes, .size(.kibibytes(4) ... .mebibytes(1 << 20)),
            "Maximum bytes of the files in all rooms.", applies: .atReload),
        Setting(
            "rooms.fileBytesPerAddress", \.rules.fileBytesPerAddress, .size(.kibibytes(4) ... .mebibytes(1 << 20)),
            "Maximum bytes of the files in all rooms that one IP address (/64 for IPv6) has sent.", applies: .atReload),
        Setting(
            "rooms.uploads", \.rules.roomUploads, count, "Files that one person may send at the same time.",
            applies: .atReload),
        Setting(
            "rooms.unfinishedFileBytes", \.rules.unfinishedFileBytes, .size(.kibibytes(4) ... .mebibytes(1 << 20)),
            "Maximum bytes of files in all rooms that people are sending or may begin to send.", applies: .atReload),
        Setting(
            "rooms.unfinishedFileBytesPerAddress", \.rules.unfinishedFileBytesPerAddress,
            .size(.kibibytes(4) ... .mebibytes(1 << 20)), "Maximum of these from one IP address (/64 for IPv6).",
            applies: .atReload),
        Setting(
            "rooms.uploadStart", \.rules.roomUploadStart, .duration(.milliseconds(10) ... .seconds(3600)),
            "How long a person who may send a file has to begin.", applies: .atReload),
        Setting(
            "rooms.uploadTime", \.rules.roomUploadTime, .duration(.milliseconds(10) ... .seconds(86400)),
            "How long a file may take to arrive.", applies: .atReload),
        Setting(
            "rooms.uploadRate", \.rules.roomUploadRate, .size(.kibibytes(1) ... .mebibytes(1024)),
            "Minimum bytes per second of an upload, after the time of uploadStart.", applies: .atReload),
        Setting(
            "rooms.fileLifetime", \.rules.roomFileLifetime, .duration(.milliseconds(10) ... .seconds(365 * 86400)),
            "How long a file is kept. The end of its room and a restart delete it earlier.", applies: .atReload),
    ]
}
