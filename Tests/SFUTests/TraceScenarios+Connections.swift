import RTC
import SFU
import TestSupport
import Testing

// MARK: Connections

extension TraceScenario {
    /// Connections that move, restart, change their transceivers, and end.
    func paths(_ room: RecordedRoom) throws {
        let clients = try room.clients(3)
        clients[0].subscribe(to: clients[1])
        clients[1].subscribe(to: clients[0])
        clients[2].subscribe(to: clients[1])
        room.run(1500)
        try move(room, clients)
        room.note("ICE restarts")
        try clients[0].receive?.negotiate(restarts: true)
        try clients[1].send?.negotiate(restarts: true)
        room.run(1500)
        try useTCP(room, clients)
        try renegotiate(room, clients)
        try end(room, clients)
    }

    /// Addresses change, media comes from an address where nobody answers, and an attacker sends garbage.
    private func move(_ room: RecordedRoom, _ clients: [SimulatedClient]) throws {
        let (send, receive) = (try #require(clients[1].send), try #require(clients[0].receive))
        room.note("the publisher moves")
        send.host.addresses = [TransportAddress(v4: 0xc0a9_0001, port: 7000)]
        room.run(2000)
        room.note("the subscriber moves")
        receive.host.addresses = [TransportAddress(v4: 0xc0a9_0002, port: 7001)]
        room.run(2500)
        for connection in [send, receive] {
            room.note("packets are sent on from elsewhere")
            room.redirected[connection.address] = TransportAddress(v4: 0x0909_0909, port: 9)
            room.run(1200)
            room.redirected = [:]
        }
        room.note("garbage")
        for length in [0, 1, 11, 12, 20, 100] {
            for first in [0x80, 0x90, 0x00, 0x16, 0xff] as [UInt8] {
                let garbage = (0..<length).map { $0 == 0 ? first : UInt8(truncatingIfNeeded: $0 * 7) }
                for from in [send.address, TransportAddress(v4: 0x0808_0808, port: 8)] where length > 0 {
                    room.network.inject(garbage, from: from, to: SimulatedServer.address)
                }
            }
        }
        send.sendControl { for _ in 0..<9 { $0.u32(0x81c9_0009) } }
        send.sendRaw(payload: [1, 2, 3]) { memory in
            for index in 0..<12 { memory[index] = index == 0 ? 0x80 : 99 }
            return 12
        }
        room.run(1000)
    }

    /// A subscriber over TCP, whose queue grows and shrinks, and whose connection is closed.
    private func useTCP(_ room: RecordedRoom, _ clients: [SimulatedClient]) throws {
        let (receive, sink) = (try #require(clients[0].receive), room.room.server.sink)
        let (old, address) = (receive.address, TransportAddress(v4: 0xc0a9_0009, port: 9))
        room.note("TCP")
        sink.streams[address] = 70_000
        receive.host.addresses = [address]
        // The router uses the connection after the subscriber's next check.
        room.run(6500)
        for milliseconds in [499, 501, 300, 200, 0] as [Int64] {
            room.note("a queue of \(milliseconds) ms")
            sink.queued[address] = .milliseconds(milliseconds)
            room.run(800)
        }
        let path = Path(socket: 70_000, isTCP: true, remote: address)
        room.note("TCP ends, known \(room.router.knows(path))")
        room.router.pathClosed(path)
        room.run(100)
        receive.host.addresses = [old]
        room.run(3000)
        room.note("known \(room.router.knows(path))")
    }

    /// Transceivers are added, used for another stream, and ended.
    private func renegotiate(_ room: RecordedRoom, _ clients: [SimulatedClient]) throws {
        let (send, receive) = (try #require(clients[1].send), try #require(clients[0].receive))
        room.note("a transceiver gets another stream")
        clients[0].subscribe(to: clients[2], slot: 0)
        room.run(700)
        clients[0].subscribe(to: clients[1], slot: 1)
        room.run(700)
        room.note("transceivers are added")
        var media = Array(receive.offered.prefix(2))
        for index in media.indices { media[index].mid = String(media[index].mid.prefix(1)) + "2" }
        receive.offered += media
        try receive.negotiate()
        clients[0].subscribe(to: clients[1], slot: 2)
        room.run(700)
        room.note("transceivers end")
        receive.offered.removeFirst(2)
        try receive.negotiate()
        room.run(700)
        room.note("a published track ends")
        let camera = try #require(send.offered.last)
        send.offered.removeLast()
        try send.negotiate()
        room.run(500)
        room.note("it returns with another SSRC")
        let source = try #require(clients[1].camera)
        source.ssrc &+= 1
        send.offered.append(send.section(source, camera.extensions))
        try send.negotiate()
        room.run(1000)
    }

    private func end(_ room: RecordedRoom, _ clients: [SimulatedClient]) throws {
        room.note("a new connection of the publisher")
        try clients[1].publish()
        try room.room.connect()
        room.run(1000)
        room.note("closed")
        room.router.close(clients[1].key, .send)
        room.router.close(clients[2].key, .receive)
        room.run(1000)
        room.note("connections with a wrong certificate, and with one that is replaced before it is used")
        try offerWrongly(room)
        try clients[1].publish()
        room.run(20)
        try clients[1].publish()
        try clients[2].watch()
        try room.room.connect()
        room.run(1500)
        for client in room.room.clients {
            room.note("\(client.number) leaves")
            room.router.leave(client.key)
            room.run(800)
        }
        room.note("nothing is left")
        room.run(1000)
    }

    /// A client whose certificate does not match its description.
    private func offerWrongly(_ room: RecordedRoom) throws {
        let client = room.client()
        try client.watch()
        let receive = try #require(client.receive)
        var offer = receive.offer(fingerprint: try #require(Fingerprint(.sha256, [UInt8](repeating: 7, count: 32))))
        offer.origin.sessionID = 99
        let text = try room.router.offer(client.key, .receive, sdp: offer.text, now: room.network.now)
        let (remote, _) = try RTC.accept(try SessionDescription(parsing: text), to: offer)
        let theirs = try #require(ICECredentials(ufrag: remote.ufrag, password: remote.pwd))
        receive.transport.setRemote(theirs, fingerprint: remote.fingerprint)
        room.run(1000)
        // The next connection has a matching one.
        try client.watch()
        #expect(throws: SDPError.self) {
            try room.router.offer(client.key, .receive, sdp: "v=0", now: room.network.now)
        }
    }
}

// MARK: Everything at once

extension TraceScenario {
    /// Random operations of the clients of two sessions.
    func mixture(_ room: RecordedRoom) throws {
        var members: [SimulatedClient] = []
        for number in 0..<6 { try join(room, &members, session: ["s", "t"][number % 2], isLayered: number < 2) }
        room.run(1000)
        while room.network.now < MediaTime(nanoseconds: 21_000_000_000) {
            let client = members[Int.random(in: members.indices, using: &room.random)]
            let others = members.filter { $0.session == client.session }
            let other = others[Int.random(in: others.indices, using: &room.random)]
            switch Int.random(in: 0..<20, using: &room.random) {
            case 0: try joinOrLeave(room, &members)
            case 1..<8: subscribe(room, client, other)
            case 8..<12: publish(room, client)
            case 12..<15: try feedBack(room, client)
            case 15..<18: try changeNetwork(room, client)
            default: try reconnect(room, client)
            }
            room.run(Int64.random(in: 1...250, using: &room.random))
        }
    }

    private func join(
        _ room: RecordedRoom, _ members: inout [SimulatedClient], session: String, isLayered: Bool
    ) throws {
        let client = room.client(in: session)
        room.note("\(client.number) joins \(session)")
        members.append(client)
        try client.publish(video: isLayered ? nil : Codec(.vp8, payloadType: 96, rtxPayloadType: 97))
        if isLayered { try client.addGalleryLayers(label: 10 * client.number) }
        try client.watch()
        client.microphone?.level = UInt8(20 + 7 * client.number)
        client.camera?.temporalPattern = SimulatedSource.threeLayers
    }

    private func joinOrLeave(_ room: RecordedRoom, _ members: inout [SimulatedClient]) throws {
        if members.count < 6 {
            try join(room, &members, session: members.count % 2 == 0 ? "s" : "t", isLayered: members.count % 3 == 0)
        } else {
            let client = members.remove(at: Int.random(in: members.indices, using: &room.random))
            room.note("\(client.number) leaves")
            room.router.leave(client.key)
            client.send?.vanish()
            client.receive?.vanish()
        }
    }

    private func subscribe(_ room: RecordedRoom, _ client: SimulatedClient, _ other: SimulatedClient) {
        let slot = Int.random(in: 0...1, using: &room.random)
        switch Int.random(in: 0..<7, using: &room.random) {
        case 0:
            room.note("\(client.number) unsubscribes from \(other.number)")
            client.unsubscribe(from: other)
        case 1..<4:
            let width = [nil, 160, 320, 640][Int.random(in: 0..<4, using: &room.random)]
            let frameRate = [nil, 8, 15][Int.random(in: 0..<3, using: &room.random)]
            let priority = Int.random(in: 0...1, using: &room.random)
            room.note("\(client.number) prefers \(other.number) \(slot) \(width ?? 0) \(frameRate ?? 0) \(priority)")
            client.prefer(
                VideoPreference(width: width, frameRate: frameRate, priority: priority), of: other, slot: slot)
        default:
            let (audio, video) = (Bool.random(using: &room.random), Bool.random(using: &room.random))
            room.note("\(client.number) subscribes to \(other.number) \(slot) \(audio) \(video)")
            client.subscribe(to: other, slot: slot, audio: audio, video: video || !audio)
        }
    }

    private func publish(_ room: RecordedRoom, _ client: SimulatedClient) {
        let (audio, video) = (Bool.random(using: &room.random), Bool.random(using: &room.random))
        switch Int.random(in: 0..<8, using: &room.random) {
        case 0:
            room.note("\(client.number) unpublishes")
            room.router.unpublish(client.stream)
        case 1..<4:
            room.note("\(client.number) publishes \(audio) \(video)")
            room.router.publish(
                client.stream, session: client.session, client: client.key, mids: Mids(audio: "a", video: "v"),
                audio: audio, video: video)
        case 4..<6:
            room.note("\(client.number) updates \(audio) \(video)")
            room.router.update(client.stream, audio: audio, video: video)
        default:
            room.note("\(client.number) turns a source on or off")
            let sources = client.send?.sources ?? []
            sources[Int.random(in: sources.indices, using: &room.random)].isOn.toggle()
        }
    }

    private func feedBack(_ room: RecordedRoom, _ client: SimulatedClient) throws {
        room.note("\(client.number) sends feedback")
        let slot = try client.video(Int.random(in: 0...1, using: &room.random))
        let number = UInt16(truncatingIfNeeded: slot.inOrder.last?.number ?? 0)
        let choice = Int.random(in: 0..<3, using: &room.random)
        client.receive?.sendControl {
            switch choice {
            case 0: RTCP.writePLI(sender: 1, media: slot.ssrc, to: &$0)
            case 1: RTCP.writeNACK(sender: 1, media: slot.ssrc, lost: [number &- 9, number &- 8, number], to: &$0)
            default: RTCP.writeFIR(sender: 1, entries: [.init(ssrc: slot.ssrc, sequenceNumber: 1)], to: &$0)
            }
        }
    }

    private func changeNetwork(_ room: RecordedRoom, _ client: SimulatedClient) throws {
        let losses = [0, 20, 100][Int.random(in: 0..<3, using: &room.random)]
        switch Int.random(in: 0..<4, using: &room.random) {
        case 0: room.lose(losses, from: client.send)
        case 1: room.lose(losses, to: client.receive)
        case 2 where client.receive?.isConnected == true:
            try room.squeeze(client, to: losses == 0 ? nil : 700_000 - Int64(losses) * 4000)
        default:
            let address = TransportAddress(v4: 0xc0aa_0000 | client.number, port: UInt16(7000 + losses))
            if client.receive?.isConnected == true { client.receive?.host.addresses = [address] }
        }
        room.note("\(client.number) has another network, \(losses)")
    }

    private func reconnect(_ room: RecordedRoom, _ client: SimulatedClient) throws {
        switch Int.random(in: 0..<4, using: &room.random) {
        case 0:
            room.note("\(client.number) sends over a new connection")
            try client.publish()
        case 1:
            room.note("\(client.number) receives over a new connection")
            try client.watch()
        default:
            room.note("\(client.number) restarts ICE")
            for connection in [client.send, client.receive] where connection?.isConnected == true {
                try connection?.negotiate(restarts: true)
            }
        }
    }
}
