import Signaling
import Wire

extension Setting {
    private static let count = Format<Int>.integer(1...1_000_000)

    static let rooms: [Setting] = [
        Setting(
            "rooms.creation", \.rules.roomCreation, .choice,
            "everyone: opening a name that does not exist creates a room. operators: only operators create rooms.",
            applies: .atReload),
        Setting(
            "rooms.emptyGrace", \.rules.roomEmptyGrace, .duration(.milliseconds(10) ... .seconds(86400)),
            "How long a room without people is kept.", applies: .atReload),
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
            "rooms.lobby", \.rules.roomLobby, count, "Maximum people who wait to be let into one room.",
            applies: .atReload),
        Setting(
            "rooms.lobbyPerAddress", \.rules.roomLobbyPerAddress, count,
            "Maximum people of one IP address who wait to be let into one room.", applies: .atReload),
        Setting(
            "rooms.refusal", \.rules.roomRefusal, .duration(.zero ... .seconds(86400)),
            "How long a person whom a host did not let in must wait before asking again.", applies: .atReload),
        Setting(
            "rooms.passwordGuessesPerMinute", \.rules.roomPasswordGuesses.perMinute, count,
            "Wrong passwords that one IP address may try per minute.", applies: .atReload),
        Setting(
            "rooms.chatLines", \.rules.roomChatLines, .integer(0...1000),
            "Maximum chat messages that people who join later receive.", applies: .atReload),
    ]
}
