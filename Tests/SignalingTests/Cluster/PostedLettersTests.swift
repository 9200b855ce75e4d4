import Cluster
import Testing
import Wire

@testable import Signaling

/// Which letters leave a node of a cluster, and which letters of others it takes.
@Suite struct PostedLettersTests {
    private static let own = NodeTag(node: 1, life: 1)!
    private static let second = NodeTag(node: 2, life: 2)!
    private static let third = NodeTag(node: 3, life: 3)!
    private let now = Timestamp(milliseconds: 1_790_000_000_000)

    private func hub(tag: NodeTag? = own) -> Hub {
        Hub(
            hubSettings: HubSettings(rules: Rules(), project: Stage.project, tag: tag),
            generator: SystemRandomNumberGenerator())
    }

    private func client(_ tag: NodeTag, _ low: UInt64) -> ConnectionID {
        ConnectionID(high: tag.rawValue << 24 | 5, low: low)
    }

    /// The effects of a letter that a machine sends.
    private func effects(of letter: Letter, on hub: Hub) -> [Effect] {
        var hub = hub
        hub.context.tell(letter)
        return hub.handle(.recordingSpace(isEnough: true), now: now)
    }

    @Test func aLetterToAClientIsPostedToTheNodeInItsID() {
        let letter = Letter.client(client(Self.second, 1), .deliver(.pong))
        #expect(effects(of: letter, on: hub()) == [.post(Self.second, letter)])
        #expect(effects(of: .client(client(Self.own, 1), .deliver(.pong)), on: hub()).isEmpty)
    }

    @Test func aBroadcastIsOneLetterForEachNode() {
        let ids = [
            client(Self.second, 1), client(Self.own, 2), client(Self.third, 3), client(Self.second, 4),
            client(Self.own, 5),
        ]
        let message = BroadcastMessage(.pong)
        #expect(
            effects(of: .clients(ids, message), on: hub()) == [
                .post(Self.second, .clients([ids[0], ids[3]], message)), .post(Self.third, .clients([ids[2]], message)),
            ])
        #expect(effects(of: .clients([ids[1], ids[4]], message), on: hub()).isEmpty)
    }

    @Test func withoutAClusterNothingIsPosted() {
        let ids = [client(Self.second, 1), client(Self.third, 3)]
        #expect(effects(of: .client(ids[0], .deliver(.pong)), on: hub(tag: nil)).isEmpty)
        #expect(effects(of: .clients(ids, BroadcastMessage(.pong)), on: hub(tag: nil)).isEmpty)
        var single = hub(tag: nil)
        let letter = Letter.client(ids[0], .deliver(.pong))
        #expect(single.handle(.received(letter, from: Self.second), now: now).isEmpty)
    }

    @Test func clientsWithTheTagOfThisNodeOrWithoutATagAreOnThisNode() {
        var random = SystemRandomNumberGenerator()
        let phone = ConnectionID.perch(at: Self.own, number: 1, using: &random)
        #expect(effects(of: .client(phone, .deliver(.pong)), on: hub()).isEmpty)
        #expect(effects(of: .client(ConnectionID(high: 7, low: 7), .deliver(.pong)), on: hub()).isEmpty)
    }

    @Test func clientsOfPerchRTCHaveTheTagOfTheirNodeInTheLowerHalfOfTheirIDs() {
        var random = SystemRandomNumberGenerator()
        let phone = ConnectionID.perch(at: Self.second, number: .max, using: &random)
        #expect(phone.isPerch && phone.tag(unless: Self.own) == Self.second)
        let letter = Letter.client(phone, .deliver(.pong))
        #expect(effects(of: letter, on: hub()) == [.post(Self.second, letter)])
    }

    @Test func aReceivedLetterForAClientOfAnotherLifeEndsHere() {
        var hub = hub()
        let letters: [Letter] = [
            .client(client(Self.third, 1), .deliver(.pong)),
            .clients([client(Self.third, 1), client(NodeTag(node: 1, life: 9)!, 2)], BroadcastMessage(.pong)),
        ]
        for letter in letters { #expect(hub.handle(.received(letter, from: Self.second), now: now).isEmpty) }
        #expect(hub.unexpectedLetters == 0)
    }

    @Test func aReceivedLetterThatNoReleasePostsIsCountedAndDropped() {
        var hub = hub()
        let letter = Letter.call(CallID(high: 1, low: 1), .outOfReach)
        #expect(hub.handle(.received(letter, from: Self.second), now: now).isEmpty)
        #expect(hub.unexpectedLetters == 1)
    }

    @Test func whatConcernsARelayIsPostedToTheNodeAtItsOtherEnd() {
        let event = RelayLetter.credentials(
            RelayCredentials(index: 1, attempt: 3, ufrag: "abcdefgh", password: "abcdefghijklmnopqrstuvwx"))
        var hub = hub()
        #expect(hub.handle(.relay(event, to: Self.second), now: now) == [.post(Self.second, .relay(event))])
        #expect(hub.handle(.relay(event, to: Self.own), now: now).isEmpty)
        var single = self.hub(tag: nil)
        #expect(single.handle(.relay(event, to: Self.second), now: now).isEmpty)
    }

    /// The letter names no node, so none can speak for another one.
    @Test func whatConcernsARelayIsAboutTheNodeThatHasPostedIt() {
        let event = RelayLetter.credentials(
            RelayCredentials(index: 1, attempt: 3, ufrag: "abcdefgh", password: "abcdefghijklmnopqrstuvwx"))
        var hub = hub()
        for sender in [Self.second, Self.third] {
            #expect(hub.handle(.received(.relay(event), from: sender), now: now) == [.relay(event, from: sender)])
        }
        #expect(hub.unexpectedLetters == 0)
        var single = self.hub(tag: nil)
        #expect(single.handle(.received(.relay(event), from: Self.second), now: now).isEmpty)
    }

    @Test func aReceivedLetterReachesItsClient() {
        let stage = Stage(tag: Self.own)
        let guest = Guest(on: stage, as: IdentityID(high: 1, low: 1))
        guest.arrive()
        let id = guest.connection
        let notice = ServerMessage.error(.init(WireError(.internalError, "Try again."), re: nil))
        stage.handle(.received(.client(id, .deliver(notice)), from: Self.second))
        stage.handle(.received(.clients([id], BroadcastMessage(notice)), from: Self.second))
        #expect(guest.take().filter { $0 == notice }.count == 2)
    }
}
