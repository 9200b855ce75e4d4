import RTC
import TestSupport
import Testing

@testable import SFU

@Suite struct AccessTests {
    /// Runs `action`, and returns whether audio and video of the first client still reach the second.
    private func mediaFlow(
        after action: (SimulatedClient, SimulatedClient) throws -> Void, seed: UInt64 = 1,
        then undo: (SimulatedClient, SimulatedClient) throws -> Void = { _, _ in }
    ) throws -> (audio: Bool, video: Bool, resumed: Bool) {
        let room = try SimulatedRoom(seed: seed)
        let clients = try room.clients(3)
        clients[1].subscribe(to: clients[0])
        clients[2].subscribe(to: clients[0], slot: 1)
        room.run(1000)
        let slots = [try clients[1].audio(), try clients[1].video()]
        #expect(slots.allSatisfy { $0.arrivals.count > 20 })
        try action(clients[0], clients[1])
        // Let packets that are in flight arrive.
        room.run(12)
        let before = slots.map(\.arrivals.count)
        room.run(1500)
        let after = slots.map(\.arrivals.count)
        try undo(clients[0], clients[1])
        try room.connect()
        room.run(1000)
        let faults = slots.flatMap { $0.faults() }
        #expect(faults == [])
        return (
            after[0] > before[0], after[1] > before[1], zip(slots, after).allSatisfy { $0.arrivals.count > $1 + 15 }
        )
    }

    @Test func mutedAudioStopsAtOnceAndResumes() throws {
        let result = try mediaFlow { publisher, _ in
            publisher.router.update(publisher.stream, audio: false, video: true)
        } then: { publisher, _ in
            publisher.router.update(publisher.stream, audio: true, video: true)
        }
        #expect(!result.audio && result.video && result.resumed)
    }

    @Test func hiddenVideoStopsAtOnceAndResumesWithAKeyframe() throws {
        let result = try mediaFlow { publisher, _ in
            publisher.router.update(publisher.stream, audio: true, video: false)
        } then: { publisher, _ in
            publisher.router.update(publisher.stream, audio: true, video: true)
        }
        #expect(result.audio && !result.video && result.resumed)
    }

    @Test func unwantedMediaIsNotSent() throws {
        let result = try mediaFlow { publisher, subscriber in
            subscriber.subscribe(to: publisher, audio: false, video: false)
        } then: { publisher, subscriber in
            subscriber.subscribe(to: publisher)
        }
        #expect(!result.audio && !result.video && result.resumed)
    }

    @Test func unsubscribingStopsMediaAtOnce() throws {
        let result = try mediaFlow { publisher, subscriber in
            subscriber.unsubscribe(from: publisher)
        } then: { publisher, subscriber in
            subscriber.subscribe(to: publisher)
        }
        #expect(!result.audio && !result.video && result.resumed)
    }

    @Test func unpublishingStopsMediaAtOnce() throws {
        let result = try mediaFlow { publisher, _ in
            publisher.router.unpublish(publisher.stream)
        } then: { publisher, subscriber in
            publisher.router.publish(
                publisher.stream, session: "s", client: publisher.key, mids: Mids(audio: "a", video: "v"), audio: true,
                video: true
            )
            subscriber.subscribe(to: publisher)
        }
        #expect(!result.audio && !result.video && result.resumed)
    }

    @Test func mediaOfALeavingPublisherStopsAtOnce() throws {
        let result = try mediaFlow { publisher, _ in publisher.router.leave(publisher.key) }
        #expect(!result.audio && !result.video)
    }

    @Test func aSubscriberThatLeavesGetsNothingMore() throws {
        let result = try mediaFlow { _, subscriber in subscriber.router.leave(subscriber.key) }
        #expect(!result.audio && !result.video)
    }

    @Test func aClosedConnectionStopsMediaAtOnceAndAnotherContinuesInTheSameTransceiver() throws {
        let result = try mediaFlow { publisher, _ in
            publisher.router.close(publisher.key, .send)
        } then: { publisher, _ in
            try publisher.publish()
        }
        #expect(!result.audio && !result.video && result.resumed)
    }

    @Test func anInactiveTransceiverGetsNothingUntilItIsActive() throws {
        let result = try mediaFlow { _, subscriber in
            let receive = try #require(subscriber.receive)
            for index in receive.offered.indices { receive.offered[index].direction = .inactive }
            try receive.negotiate()
        } then: { _, subscriber in
            let receive = try #require(subscriber.receive)
            for index in receive.offered.indices { receive.offered[index].direction = .recvonly }
            try receive.negotiate()
        }
        #expect(!result.audio && !result.video && result.resumed)
    }

    @Test func aStreamThatLostItsTransceiverToAnotherDoesNotTakeItBack() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(3)
        clients[0].subscribe(to: clients[1])
        room.run(500)
        clients[0].subscribe(to: clients[2])
        room.run(500)
        // Later changes to the removed stream or to the connection must not bring the stream back.
        room.router.update(clients[1].stream, audio: false, video: false)
        room.router.update(clients[1].stream, audio: true, video: true)
        room.run(300)
        try clients[1].publish()
        try clients[0].receive?.negotiate(restarts: true)
        try room.connect()
        room.run(300)
        #expect(try clients[0].audio().labels == [2, 3] && clients[0].video().labels == [2, 3])
        clients[0].unsubscribe(from: clients[2])
        room.router.update(clients[1].stream, audio: true, video: true)
        room.run(300)
        #expect(try clients[0].audio().labels == [2, 3])
    }

    @Test func aClientCannotPublishAnothersStream() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(3)
        clients[2].subscribe(to: clients[0])
        room.run(300)
        room.router.publish(
            clients[0].stream, session: "s", client: clients[1].key, mids: Mids(audio: "v", video: "a"), audio: false,
            video: false
        )
        room.run(300)
        #expect(try clients[2].audio().labels == [1] && clients[2].audio().arrivals.count > 20)
    }

    @Test func nothingOfALeavingClientIsKept() throws {
        let room = try SimulatedRoom()
        let clients = try room.clients(4)
        for one in clients {
            for other in clients where one !== other { one.subscribe(to: other, slot: Int(other.number % 2)) }
        }
        room.run(500)
        for client in clients.shuffled(using: &room.random) { room.router.leave(client.key) }
        room.run(1000)
        let router = room.router
        #expect(router.streams.clients.isEmpty && router.streams.publications.isEmpty && router.peers.byPath.isEmpty)
        #expect(
            router.peers.byUfrag.isEmpty && router.egress.unflushed.isEmpty && router.speakers.sessions.isEmpty
                && router.isIdle)
        #expect(router.peerCount == 0)
    }
}
