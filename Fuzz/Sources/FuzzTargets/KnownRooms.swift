import Signaling
import Wire

/// Messages about rooms, with ids that clients have received.
extension KnownIDs {
    private static let roomNames = ["red", "Red", "blue"].map { RoomName($0) } + [nil]

    func roomVerb(from input: inout InputReader) -> RoomVerb {
        let choice = input.byte()
        let connection = input.pick(connections.reversed()) ?? ConnectionID(high: 0, low: 0)
        let one = choice & 0x80 == 0 ? nil : connection
        switch choice % 16 {
        case 0...4: return .join(roomJoin(from: &input))
        case 5: return .leave
        case 6: return .admit(.init(connection: connection))
        case 7: return .deny(.init(connection: connection))
        case 8, 9: return .set(.init(options: changes(from: &input)))
        case 10: return .mute(.init(connection: one))
        case 11: return .stopShare(.init(connection: one))
        case 12: return .remove(.init(connection: connection, ban: choice & 0x80 != 0))
        case 13: return .role(.init(connection: connection, role: input.pick(RoomRole.allCases) ?? .guest))
        case 14: return .say(.init(text: text(from: &input) ?? ""))
        default:
            // Earlier inputs mean the same as before: only the lowest bits of a hand's byte were not used.
            guard choice & 0x40 != 0 else { return .hand(.init(raised: choice & 0x80 == 0)) }
            var react = RoomVerb.React()
            react.reaction = text(from: &input) ?? "👋"
            return .react(react)
        }
    }

    private func roomJoin(from input: inout InputReader) -> RoomVerb.Join {
        let choice = input.byte()
        var join = RoomVerb.Join(
            name: input.pick(Self.roomNames) ?? nil, displayName: text(from: &input) ?? "",
            password: choice & 1 == 0 ? nil : "sesame", options: choice & 2 == 0 ? nil : changes(from: &input))
        if choice & 4 != 0 { join.routedOnly = true }
        return join
    }

    private func changes(from input: inout InputReader) -> RoomChanges {
        var changes = RoomChanges()
        let (which, values) = (input.byte(), input.byte())
        if which & 1 != 0 { changes.media = values & 1 == 0 ? .routed : .mesh }
        if which & 2 != 0 { changes.capacity = 1 + Int(values % 8) }
        if which & 4 != 0 { changes.locked = values & 4 == 0 }
        if which & 8 != 0 { changes.lobby = values & 8 == 0 }
        if which & 16 != 0 { changes.password = values & 16 == 0 ? "sesame" : "" }
        if which & 32 != 0 { changes.chat = values & 32 == 0 }
        if which & 64 != 0 { changes.share = values & 64 == 0 ? .hosts : .all }
        if which & 128 != 0 { changes.persistent = values & 128 == 0 }
        return changes
    }
}
