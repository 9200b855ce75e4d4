import RTC
import TestSupport
import Testing

@testable import SFU

@Suite("Streams beyond the limits of a relay")
struct RelayLimitTests {
    private func stranger(_ number: Int) -> Key { Key(high: 9, low: UInt64(number)) }

    /// The limits that the server has reported.
    private func reported(_ server: SimulatedServer) -> [RelayEvent] {
        server.relayChanges.filter { if case .full = $0 { true } else { false } }
    }

    @Test("clients beyond the limit wait, without a demand, and the first one is demanded when there is room")
    func clients() throws {
        let room = try SimulatedRoom(nodes: 2)
        let clients = try room.clients(2)
        let (near, far, relay) = (room.server, room.servers[1], room.relay(to: 0))
        far.router.stopPulling(clients[0].key, over: relay, now: room.network.now)
        room.run(500)
        for number in 0..<RelayMessage.maxClients {
            far.router.pull(stranger(number), over: relay, now: room.network.now)
        }
        #expect(far.router.counters.relayClientsOverLimit == 0)
        // Both wait in this order. Pulling a client that already waits changes nothing.
        for key in [clients[0].key, stranger(5000), clients[0].key] {
            far.router.pull(key, over: relay, now: room.network.now)
        }
        clients[1].subscribe(to: clients[0])
        room.run(1500)
        #expect(try clients[1].video().arrivals.isEmpty)
        #expect(far.router.counters.relayClientsOverLimit == 2)
        #expect(reported(far) == [.full(relay, .clients)])
        // The publishers' node has not seen a demand beyond the limit, which it would refuse.
        #expect(near.router.counters.relayClientsOverLimit == 0 && reported(near).isEmpty)

        far.router.stopPulling(stranger(0), over: relay, now: room.network.now)
        room.run(1500)
        #expect(try clients[1].video().arrivals.count > 10)
        #expect(near.router.counters.relayClientsOverLimit == 0)
        #expect(far.router.counters.relayClientsOverLimit == 2 && reported(far).count == 1)
    }

    @Test("clients that a node demands beyond the limit are not sent to it, and are counted")
    func demands() throws {
        let room = try SimulatedRoom()
        var random = SeededGenerator(seed: 1)
        var reached: [RelayLimit] = []
        let connection = RelayConnection(link: try link(&random), output: room.router.output) { reached.append($0) }
        let sender = RelaySender(connection, feeds: room.router.feeds, carriesPublishers: true)
        for number in 0..<RelayMessage.maxClients + 2 {
            sender.receive(RelayDemand(client: stranger(number), number: 1, tracks: []), now: room.network.now)
        }
        #expect(reached == [.demands, .demands] && room.router.counters.relayClientsOverLimit == 2)
        sender.end(stranger(0), number: 2)
        sender.receive(
            RelayDemand(client: stranger(RelayMessage.maxClients), number: 1, tracks: []), now: room.network.now)
        #expect(reached.count == 2)
    }

    @Test("encodings without a channel wait for one")
    func encodings() throws {
        let room = try SimulatedRoom(nodes: 2)
        let clients = try room.clients(2)
        room.run(1000)
        let (far, relay) = (room.servers[1], room.relay(to: 0))
        let receiver = try #require(far.router.relays.all.first?.receiver)
        var random = SeededGenerator(seed: 1)
        let other = RemotePublisher(
            stranger(0), at: 1, over: try link(&random), ingress: far.router.ingress, receiver: receiver, after: 0)
        let taken = (0..<RelayChannels.count).compactMap { _ in
            receiver.takeChannel(for: other, now: room.network.now)
        }
        #expect(taken.count == RelayChannels.count)
        clients[1].subscribe(to: clients[0])
        room.run(2000)
        #expect(try clients[1].video().arrivals.isEmpty && clients[1].audio().arrivals.isEmpty)
        #expect(far.router.counters.relayEncodingsOverLimit == 2)
        #expect(reported(far) == [.full(relay, .encodings)])
        for channel in taken.prefix(2) {
            receiver.drop(channel)
            receiver.release(channel, now: room.network.now)
        }
        room.run(3000)
        #expect(try clients[1].video().arrivals.count > 20 && clients[1].audio().arrivals.count > 20)
        #expect(far.router.counters.relayEncodingsOverLimit == 2)
    }

    private func link(_ random: inout SeededGenerator) throws -> PeerLink {
        let certificate = try #require(DTLSCertificate.make())
        let transport = PeerTransport(server: ICECredentials(using: &random), certificate: certificate)
        return PeerLink(client: Key(high: 0, low: 0), transport: transport, using: &random)
    }

    @Test("clients stay in the order in which they were added, however many are removed")
    func order() {
        var order = ClientOrder()
        #expect(order.isEmpty && order.takeFirst(3) == [])
        for number in [5, 3, 9, 3, 1] { _ = order.insert(stranger(number)) }
        #expect(order.insert(stranger(9)) == false)
        #expect(order.all == [5, 3, 9, 1].map(stranger))
        order.remove(stranger(3))
        order.remove(stranger(77))
        #expect(order.insert(stranger(3)) == true)
        #expect(order.takeFirst(0) == [] && order.takeFirst(-1) == [])
        #expect(order.takeFirst(2) == [5, 9].map(stranger))
        #expect(order.takeFirst(9) == [1, 3].map(stranger) && order.isEmpty)
    }
}
