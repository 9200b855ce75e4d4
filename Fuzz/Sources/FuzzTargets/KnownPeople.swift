import Signaling
import Wire

/// Messages about people and calls, with ids that clients have received.
extension KnownIDs {
    func peopleVerb(from input: inout InputReader) -> ClientMessage {
        switch input.byte() % 16 {
        case 0, 1: .presence(.appear(appearance(from: &input)))
        case 2: .presence(.set(appearance(from: &input)))
        case 3: .presence(presenceVerb(from: &input))
        case 4: .presence(.useLink(.init(code: input.pick(codes) ?? "", label: text(from: &input))))
        case 5: .nearby(.move(move(from: &input)))
        case 6: .nearby(.watch(watch(from: &input)))
        case 7: .nearby(input.byte() & 1 == 0 ? .forget : .unwatch)
        case 8, 9, 10: .call(.start(.init(person: person(from: &input), video: input.byte() & 1 == 0)))
        case 11, 12, 13: .call(callVerb(from: &input))
        case 14: .contact(contactVerb(from: &input))
        default: .push(.register(PushRegistration(kind: .web, endpoint: text(from: &input) ?? "")))
        }
    }

    private func person(from input: inout InputReader) -> PersonID {
        input.pick(Self.people) ?? PersonID(high: 0, low: 0)
    }

    private func appearance(from input: inout InputReader) -> Appearance {
        let choice = input.byte()
        return Appearance(
            name: choice & 1 == 0 ? nil : text(from: &input), visible: choice & 2 == 0 ? nil : choice & 4 == 0,
            doNotDisturb: choice & 8 == 0 ? nil : choice & 16 == 0,
            ringable: choice & 32 == 0 ? nil : input.pick(Ringable.allCases)
        )
    }

    private func presenceVerb(from input: inout InputReader) -> PresenceVerb {
        switch input.byte() % 9 {
        case 0: .leave
        case 1: .find(.init(person: person(from: &input)))
        case 2: .link
        case 3: .devices
        case 4: .unlink(.init(device: person(from: &input)))
        case 5: .delete
        case 6: .block(.init(person: person(from: &input)))
        case 7: .unblock(.init(person: person(from: &input)))
        default: .blocked
        }
    }

    /// Returns a change of location to somewhere around one place, or to an arbitrary location.
    private func move(from input: inout InputReader) -> NearbyVerb.Move {
        let choice = input.byte()
        let (north, east) = (Double(input.byte()), Double(input.byte()))
        switch choice % 4 {
        case 0: return NearbyVerb.Move(latitude: 52.5 + north / 1000, longitude: 13.4 + east / 1000)
        case 1: return NearbyVerb.Move(latitude: north - 90, longitude: 2 * east - 180)
        case 2: return NearbyVerb.Move(latitude: 90, longitude: east - 180)
        default:
            var move = NearbyVerb.Move()
            (move.latitude, move.longitude) = (.string("52"), .integer(Int64(choice) << 55))
            return move
        }
    }

    private func watch(from input: inout InputReader) -> NearbyVerb.Watch {
        let choice = input.byte()
        let after = choice & 1 == 0 ? nil : choice & 2 == 0 ? input.pick(pages) : text(from: &input)
        return NearbyVerb.Watch(
            unit: choice & 4 == 0 ? .miles : .kilometers, radius: 1 + Int(input.byte()), after: after,
            limit: choice & 8 == 0 ? nil : 1 + Int(input.byte() % 50)
        )
    }

    private func call(from input: inout InputReader) -> CallID {
        input.pick(Array(calls.reversed())) ?? CallID(high: 0, low: 0)
    }

    private func callVerb(from input: inout InputReader) -> CallVerb {
        let choice = input.byte()
        let call = call(from: &input)
        let answer = CallVideo(call: call, video: choice & 0x80 == 0)
        return switch choice % 10 {
        case 0, 1, 2: .accept(answer)
        case 3: .decline(.init(call: call))
        case 4: .cancel(.init(call: call))
        case 5: .end(.init(call: call))
        case 6: .update(answer)
        case 7: .rejoin(.init(call: call))
        case 8: .seen(.init(call: call))
        default: choice & 0x40 == 0 ? .log(.init()) : .forget(.init(call: choice & 0x20 == 0 ? nil : call))
        }
    }

    private func contactVerb(from input: inout InputReader) -> ContactVerb {
        switch input.byte() % 4 {
        case 0: .list
        case 1: .remove(.init(person: person(from: &input)))
        case 2: .keep(.init(call: call(from: &input)))
        default: .keep(.init(match: match(from: &input) ?? MatchID(high: 0, low: 0)))
        }
    }
}
