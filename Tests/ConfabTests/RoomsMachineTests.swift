import Testing
import Wire

@testable import Confab

/// The rules of rooms that only Swift has; `protocol/scripts/rooms.json` has the others.
@Suite("The rules of rooms")
struct RoomsMachineTests {
    private typealias Effect = RoomsMachine.Effect

    private var machine = RoomsMachine(random: SplitMix(seed: 1))
    private var now = Timestamp(milliseconds: 1_000_000)
    private let caller = FeatureCaller(number: 1)
    private let leaver = FeatureCaller(number: 2)

    private func joined(role: RoomRole = .host, token: String = "one") -> RoomNotice {
        var joined = RoomNotice.Joined()
        (joined.role, joined.admission) = (role, Admission(session: .unset, token: token))
        var me = RoomPerson()
        (me.displayName, me.role) = ("Ada", role)
        joined.people = [me]
        return .joined(joined)
    }

    private mutating func connect(_ start: ConnectionEvent.Start = .first) -> [Effect] {
        machine.handle(.connected(Welcome(), start), now: now)
    }

    private mutating func ask() -> [Effect] {
        _ = connect()
        return machine.handle(.join(.init(name: RoomName("garden"), displayName: "Ada")), from: caller, now: now)
    }

    /// Joins the room and its session.
    private mutating func enter(role: RoomRole = .host) {
        _ = ask()
        _ = machine.handle(.answered(1, .success(.room(joined(role: role)))), now: now)
        _ = machine.sessionJoined(membership: 1)
    }

    private mutating func waitForTimeout() -> [Effect] {
        guard let next = machine.nextTimeout else { return [] }
        now = next
        return machine.handleTimeout(now: now)
    }

    private func tells(_ effects: [Effect]) -> [RoomsMachine.Event] {
        effects.compactMap { if case .tell(let news) = $0 { news } else { nil } }
    }

    private func joins(_ effects: [Effect]) -> [RoomVerb.Join] {
        effects.compactMap { if case .send(_, .room(.join(let join))) = $0 { join } else { nil } }
    }

    @Test("canceling the task of a person in the lobby leaves the lobby")
    mutating func cancelled() {
        _ = ask()
        _ = machine.handle(.answered(1, .success(.room(.waiting(.init(re: 1, name: .unset))))), now: now)
        #expect(machine.cancelled(leaver, now: now) == [])
        #expect(machine.cancelled(caller, now: now) == [.send(2, .room(.leave))])
        #expect(machine.handle(.event(.room(joined())), now: now) == [])
    }

    @Test("a person who joins while there is no connection hears why")
    mutating func joinedOffline() {
        _ = connect()
        _ = machine.handle(.ended(nil), now: now)
        #expect(joins(machine.handle(.join(.init(name: nil, displayName: "")), from: caller, now: now)).count == 1)
        // The client line answers at once.
        #expect(machine.handle(.answered(1, .failure(.closed)), now: now) == [.finish(caller, .failure(.closed))])
    }

    @Test("an answer of another kind ends the first attempt")
    mutating func otherAnswer() {
        for answer in [ServerMessage.ok(.init(re: 1)), .room(.person(.init()))] {
            machine = RoomsMachine(random: SplitMix(seed: 1))
            _ = ask()
            let effects = machine.handle(.answered(1, .success(answer)), now: now)
            let error = ConfabError.unexpected(answer, for: "room.join")
            #expect(effects == [.finish(caller, .failure(error))])
        }
    }

    @Test("what an earlier stay in a session tells late changes nothing")
    mutating func earlierMembership() {
        _ = ask()
        _ = machine.handle(.answered(1, .success(.room(joined()))), now: now)
        _ = machine.handle(.expired, now: now)
        guard case .send(let id, _) = connect(.restarted).last else { return #expect(Bool(false)) }
        // The session of the first stay was joined before the connection was lost.
        #expect(machine.sessionJoined(membership: 1) == [])
        _ = machine.handle(.answered(id, .success(.room(joined(token: "two")))), now: now)
        #expect(machine.sessionJoined(membership: 1) == [])
        #expect(machine.sessionLost(membership: 1, now: now) == [])
        #expect(machine.sessionFailed(.connectionRestarted, membership: 1, now: now) == [])
        #expect(machine.sessionJoined(membership: 2).last == .finish(caller, .success(nil)))
    }

    @Test("a join that was lost with its connection is asked for again, also if nothing else is reported")
    mutating func lostJoin() {
        _ = ask()
        #expect(machine.handle(.answered(1, .failure(.connectionRestarted)), now: now) == [])
        guard case .send(let id, _)? = waitForTimeout().last else { return #expect(Bool(false)) }
        _ = machine.handle(.answered(id, .success(.room(joined()))), now: now)
        // The same for the session's join. There is no place to give up.
        #expect(
            machine.sessionFailed(.connectionRestarted, membership: 1, now: now) == [.perform(.exit(isLost: true))])
        #expect(joins(waitForTimeout()).count == 1)
    }

    @Test("a lost session is joined again unless the room ends")
    mutating func lostSession() {
        enter()
        #expect(machine.sessionLost(membership: 1, now: now) == [.perform(.exit(isLost: true)), .tell(.reconnecting)])
        var ended = RoomNotice.Ended()
        ended.reason = .removed
        #expect(tells(machine.handle(.event(.room(.ended(ended))), now: now)) == [.ended(.removed, nil)])
        #expect(machine.nextTimeout == nil)

        machine = RoomsMachine(random: SplitMix(seed: 1))
        enter()
        _ = machine.sessionLost(membership: 1, now: now)
        let effects = waitForTimeout()
        #expect(effects.contains { if case .send(_, .room(.leave)) = $0 { true } else { false } })
        guard case .send(let id, _) = effects.last else { return #expect(Bool(false)) }
        #expect(joins(machine.handle(.answered(id, .success(.ok(.init(re: 2)))), now: now)).count == 1)
    }

    @Test("a room that is joined again after its session was lost is kept")
    mutating func lostSessionAndConnection() {
        enter()
        _ = machine.sessionLost(membership: 1, now: now)
        _ = machine.handle(.expired, now: now)
        guard case .send(let id, _) = connect(.restarted).last else { return #expect(Bool(false)) }
        _ = machine.handle(.answered(id, .success(.room(joined(token: "two")))), now: now)
        _ = machine.sessionJoined(membership: 2)
        #expect(machine.nextTimeout == nil)
    }

    @Test("a room is joined again with options that a server accepts")
    mutating func acceptableOptions() {
        enter()
        // The room of these tests has a capacity of 0.
        _ = machine.handle(.expired, now: now)
        #expect(joins(connect(.restarted)).map(\.options?.capacity) == [nil])
    }

    @Test("a raised hand is raised again")
    mutating func raisedHand() {
        enter()
        _ = machine.handle(.verb(.hand(.init(raised: true))), from: leaver, now: now)
        _ = machine.handle(.answered(2, .success(.ok(.init(re: 2)))), now: now)
        _ = machine.handle(.expired, now: now)
        guard case .send(let id, _) = connect(.restarted).last else { return #expect(Bool(false)) }
        let effects = machine.handle(.answered(id, .success(.room(joined()))), now: now)
        #expect(effects.contains { if case .send(_, .room(.hand)) = $0 { true } else { false } })
    }

    @Test("no more people are kept than rooms have")
    mutating func crowd() {
        var notice = RoomNotice.Joined()
        notice.people = (0..<1000).map { number in
            var person = RoomPerson()
            person.connection = ConnectionID(high: 0, low: UInt64(number))
            return person
        }
        _ = ask()
        _ = machine.handle(.answered(1, .success(.room(.joined(notice)))), now: now)
        var late = RoomPerson()
        late.connection = ConnectionID(high: 1, low: 0)
        _ = machine.handle(.event(.room(.person(late))), now: now)
        #expect(machine.room?.people.count == 200)
    }
}
