import Cluster
import Testing
import Wire

@testable import Signaling

/// Letters to people that wait until it is known on which node the person is, for example while Redis is away.
@Suite struct WaitingLettersTests {
    private static let other = NodeTag(node: 2, life: 2)!
    private let now = Timestamp(milliseconds: 1_790_000_000_000)
    private let bo = IdentityID(high: 1, low: 2)

    private func hub(maxContacts: Int = 500) -> Hub {
        var rules = Rules()
        rules.maxContacts = maxContacts
        let tag = NodeTag(node: 1, life: 1)!
        return Hub(
            hubSettings: HubSettings(rules: rules, project: Stage.project, tag: tag),
            generator: SystemRandomNumberGenerator())
    }

    private var key: PlaceKey { Stage.project.placeKey(of: .person(bo)) }

    private func contact(_ number: UInt64) -> IdentityID { IdentityID(high: 7, low: number) }

    private func presence(_ number: UInt64, isOnline: Bool) -> Letter {
        let identity = contact(number)
        let other = Counterpart(
            identity: identity, person: Stage.project.personID(of: identity), name: "Ada", isOnline: isOnline)
        return .person(bo, .contact(.presence(of: other)))
    }

    private func query(_ number: UInt64) -> Letter { .person(bo, .contact(.queried(by: contact(number)))) }
    private func removal(_ number: UInt64) -> Letter { .person(bo, .contact(.removed(by: contact(number)))) }

    /// Lets machines of this node send these letters. Returns the effects.
    @discardableResult private func send(_ letters: [Letter], on hub: inout Hub) -> [Effect] {
        for letter in letters { hub.context.tell(letter) }
        return hub.handle(.recordingSpace(isEnough: true), now: now)
    }

    @Test func aNewerLetterOfAContactReplacesTheOneOfTheSameKindThatWaits() {
        var hub = hub()
        let reach = send([presence(1, isOnline: true), query(1), presence(2, isOnline: true)], on: &hub)
        #expect(reach == [.reach(key, .person(bo), claims: false)])
        #expect(hub.handle(.placesUnavailable(key), now: now).isEmpty)
        #expect(send([presence(1, isOnline: false), removal(2), query(1)], on: &hub) == [])
        #expect(hub.waitingLetters == 4)
        let left = [presence(2, isOnline: true), presence(1, isOnline: false), removal(2), query(1)]
        #expect(hub.handle(.placed(key, at: Self.other), now: now) == left.map { .post(Self.other, $0) })
        #expect(hub.waitingLetters == 0 && hub.droppedLetters == 0)
    }

    @Test func moreLettersThanThePersonsContactsSendAreDroppedAndCounted() {
        var hub = hub(maxContacts: 2)
        send((1...9).map { presence($0, isOnline: true) }, on: &hub)
        #expect(hub.waitingLetters == 6 && hub.droppedLetters == 3)
        send([presence(6, isOnline: false), presence(7, isOnline: false)], on: &hub)
        #expect(hub.waitingLetters == 6 && hub.droppedLetters == 4)
        let posted = hub.handle(.placed(key, at: Self.other), now: now)
        #expect(posted.last == .post(Self.other, presence(6, isOnline: false)))
    }

    @Test func aLetterBehindAClientThatADrainingNodeSendsAwayIsCounted() {
        var hub = hub()
        _ = hub.handle(.service(.draining), now: now)
        let client = ConnectionID(high: NodeTag(node: 1, life: 1)!.rawValue << 24 | 5, low: 1)
        let arrival = Letter.person(bo, .arrived(client, address: "192.0.2.1", .none, PersonRecord()))
        send([arrival, presence(1, isOnline: true)], on: &hub)
        _ = hub.handle(.unplaced(key), now: now)
        #expect(hub.waitingLetters == 0 && hub.droppedLetters == 1)
    }
}
