import Foundation
import Server
import Signaling
import TestSupport
import Testing
import Wire

@Suite("People and calls over real sockets", .ownThreads, .timeLimit(.minutes(3)))
struct PeopleServerTests {
    private let here = NearbyVerb.Move(latitude: 52.52, longitude: 13.405)

    /// A person who is online and visible.
    private struct Visitor {
        let client: SocketClient
        let secret: String?
        let person: PersonID
    }

    private func arrive(_ server: TestServer, _ name: String, secret: String? = nil) async throws -> Visitor {
        let client = try await SocketClient.connect(port: server.port)
        let welcome = try await client.greet(identity: secret)
        let own = try await client.appear(name)
        #expect(own.name == name)
        return Visitor(client: client, secret: welcome.identity ?? secret, person: own.person)
    }

    @Test("a person with a location is listed nearby until the connection drops")
    func nearby() async throws {
        try await TestServer.run({ $0.rules.nearbyInterval = .milliseconds(20) }) { server in
            let (ann, bob) = (try await arrive(server, "Ann"), try await arrive(server, "Bob"))
            try await ann.client.ask(.nearby(.move(here)))
            let watch = try await ann.client.say(.nearby(.watch(.init(unit: .miles, radius: 200))))
            let list = try await ann.client.hear("the list") { message -> NearbyNotice.List? in
                if case .nearby(.list(let list)) = message, list.re == watch { list } else { nil }
            }
            #expect(list.people.isEmpty)
            try await bob.client.ask(.nearby(.move(here)))
            let change = try await ann.client.hear("Bob in the list", changed)
            #expect(change.people.map(\.name) == ["Bob"])
            #expect(change.people.map(\.person) == [bob.person])
            #expect(change.people.map(\.distance) == [2])
            await bob.client.drop()
            let gone = try await ann.client.hear("Bob's removal from the list", changed)
            #expect(gone.gone == [bob.person])
        }
    }

    private func changed(_ message: ServerMessage) -> NearbyNotice.Changed? {
        if case .nearby(.changed(let change)) = message { change } else { nil }
    }

    @Test("a call rings, is accepted, joined and ended, and then is in both call logs immediately")
    func calling() async throws {
        try await TestServer.run { server in
            let (ann, bob) = (try await arrive(server, "Ann"), try await arrive(server, "Bob"))
            let placed = try await ann.client.call(bob.person)
            #expect(placed.person.name == "Bob")
            let incoming = try await bob.client.hearRing()
            #expect(incoming.call == placed.call)
            #expect(incoming.person == PersonInfo(id: ann.person, name: "Ann", online: true))
            try await bob.client.say(.call(.accept(.init(call: placed.call, video: false))))
            let (atAnn, atBob) = (try await ann.client.hearAccepted(), try await bob.client.hearAccepted())
            #expect(atAnn.mediaMode == .routed)
            #expect(atAnn.admission.session == atBob.admission.session)
            #expect(atAnn.admission.token != atBob.admission.token)
            #expect(atAnn.withVideo == false)
            _ = try await ann.client.join(atAnn.admission)
            _ = try await bob.client.join(atBob.admission)
            try await ann.client.ask(.call(.end(.init(call: placed.call))))
            let ended = try await bob.client.hearEnd()
            #expect((ended.call, ended.reason, ended.direction) == (placed.call, .hungUp, .incoming))
            #expect(ended.duration != nil)
            // Both people request the call log immediately. The answer must include the call that has just ended.
            let (annsLog, bobsLog) = (try await ann.client.log(), try await bob.client.log())
            #expect(annsLog.calls.map(\.call) == [placed.call])
            #expect(bobsLog.calls.map(\.outcome) == [.hungUp])
            #expect(bobsLog.calls.map(\.person.name) == ["Ann"])
        }
    }

    @Test("an invalid call log cursor is malformed")
    func wrongCursor() async throws {
        try await TestServer.run { server in
            let ann = try await arrive(server, "Ann")
            let log = try await ann.client.say(.call(.log(.init(before: "1-2"))))
            #expect(try await ann.client.hearError(to: log).code == .malformed)
            let push = try await ann.client.say(
                .push(.register(PushRegistration(kind: .web, endpoint: "http://127.0.0.1/"))))
            let refused = try await ann.client.hearError(to: push).code
            #expect([.pushNotAllowed, .pushInvalid].contains(refused), "\(refused)")
        }
    }

    @Test("calls survive a restart, and people who have not yet reconnected can be found")
    func restart() async throws {
        let directory = NSTemporaryDirectory() + "confab-people-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let before = try await TestServer.run(dataDirectory: directory) { server in
            let (ann, bob) = (try await arrive(server, "Ann"), try await arrive(server, "Bob"))
            let (cem, dan) = (try await arrive(server, "Cem"), try await arrive(server, "Dan"))
            let ringing = try await ann.client.call(bob.person)
            let active = try await cem.client.call(dan.person)
            _ = try await dan.client.hearRing()
            try await dan.client.say(.call(.accept(.init(call: active.call, video: true))))
            let accepted = (try await cem.client.hearAccepted(), try await dan.client.hearAccepted())
            _ = try await cem.client.join(accepted.0.admission)
            _ = try await dan.client.join(accepted.1.admission)
            return (people: [ann, bob, cem, dan], ringing: ringing, active: active)
        }
        try await TestServer.run(dataDirectory: directory) { server in
            let people = before.people
            let ann = try await arrive(server, "Ann", secret: people[0].secret)
            #expect(ann.person == people[0].person)
            #expect(
                try await ann.client.find(people[1].person)
                    == PersonInfo(id: people[1].person, name: "Bob", online: false))
            try await ann.client.say(.call(.rejoin(.init(call: before.ringing.call))))
            _ = try await ann.client.hear("the call it placed") { message -> CallNotice.Placed? in
                if case .call(.placed(let placed)) = message, placed.call == before.ringing.call { placed } else { nil }
            }
            let bob = try await arrive(server, "Bob", secret: people[1].secret)
            let incoming = try await bob.client.hearRing()
            #expect(incoming.call == before.ringing.call)
            #expect(incoming.expiresIn < before.ringing.expiresIn)
            try await bob.client.say(.call(.accept(.init(call: incoming.call, video: true))))
            _ = try await ann.client.hearAccepted()

            let (cem, dan) = (
                try await arrive(server, "Cem", secret: people[2].secret),
                try await arrive(server, "Dan", secret: people[3].secret)
            )
            for visitor in [cem, dan] {
                try await visitor.client.say(.call(.rejoin(.init(call: before.active.call))))
                _ = try await visitor.client.join(try await visitor.client.hearAccepted().admission)
            }
            try await dan.client.ask(.call(.end(.init(call: before.active.call))))
            #expect(try await cem.client.hearEnd().reason == .hungUp)
        }
        let storage = try SQLiteStorage(directory: directory)
        #expect(try await storage.openCalls().map(\.id) == [before.ringing.call])
        try await storage.close()
    }

    @Test("a linked device acts as the person until it is unlinked, and a deleted secret is invalid")
    func devices() async throws {
        try await TestServer.run { server in
            let ann = try await arrive(server, "Ann")
            let phone = try await arrive(server, "Phone")
            try await ann.client.say(.presence(.link))
            let code = try await ann.client.hear("a code") { message -> String? in
                if case .presence(.linkCode(let link)) = message { link.code } else { nil }
            }
            try await phone.client.say(.presence(.useLink(.init(code: code, label: "Phone"))))
            #expect(try await phone.client.hearClose() == 4409)
            let linked = try await SocketClient.connect(port: server.port)
            #expect(try await linked.greet(identity: phone.secret).identity == nil)
            #expect(try await linked.appear().person == ann.person)

            try await ann.client.ask(.presence(.unlink(.init(device: phone.person))))
            #expect(try await linked.hearClose() == 4409)
            // Answers from storage must not be outdated, even immediately afterwards.
            let unlinked = try await server.client(identity: phone.secret)
            #expect(try await unlinked.appear().person == phone.person)

            try await ann.client.say(.presence(.delete))
            #expect(try await ann.client.hearClose() == 4409)
            let nobody = try await SocketClient.connect(port: server.port)
            let welcome = try await nobody.greet(identity: ann.secret)
            #expect(welcome.identity != nil && welcome.identity != ann.secret, "a new person gets a new secret")
            let person = try await nobody.appear().person
            #expect(person != ann.person && person != phone.person)
            let find = try await nobody.say(.presence(.find(.init(person: ann.person))))
            #expect(try await nobody.hearError(to: find).code == .notFound)
        }
    }
}

extension PeopleServerTests {
    @Test("a deleted user with a user token starts over once, not with every hello")
    func deletedUser() async throws {
        try await TestServer.run { server in
            let keys = try server.project.project
            let now = Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
            let token = keys.makeUserToken(user: "ann", name: "Ann", now: now)
            let first = try await server.client(token: token)
            let person = try await first.appear().person
            try await first.say(.presence(.delete))
            #expect(try await first.hearClose() == 4409)
            let second = try await server.client(token: token)
            #expect(try await second.appear(doNotDisturb: true).person == person)
            await second.drop()
            let third = try await server.client(token: token)
            #expect(try await third.appear().doNotDisturb, "the new data is kept")
        }
    }
}

extension SocketClient {
    fileprivate func hearError(to re: UInt64) async throws -> WireError {
        try await hear("an error") { if case .error(let error) = $0, error.re == re { error.error } else { nil } }
    }

    fileprivate func appear(_ name: String? = nil, doNotDisturb: Bool? = nil) async throws -> PresenceNotice.Own {
        let re = try await say(.presence(.appear(Appearance(name: name, doNotDisturb: doNotDisturb))))
        return try await hear("presence.self") { message -> PresenceNotice.Own? in
            if case .presence(.own(let own)) = message, own.re == re { own } else { nil }
        }
    }

    fileprivate func find(_ person: PersonID) async throws -> PersonInfo {
        try await say(.presence(.find(.init(person: person))))
        return try await hear("presence.person") { message -> PersonInfo? in
            if case .presence(.person(let found)) = message { found.person } else { nil }
        }
    }

    fileprivate func call(_ person: PersonID, video: Bool = true) async throws -> CallNotice.Placed {
        try await say(.call(.start(.init(person: person, video: video))))
        return try await hear("call.placed") { if case .call(.placed(let placed)) = $0 { placed } else { nil } }
    }

    fileprivate func hearRing() async throws -> CallNotice.Incoming {
        try await hear("call.incoming") { if case .call(.incoming(let call)) = $0 { call } else { nil } }
    }

    fileprivate func hearAccepted() async throws -> CallNotice.Accepted {
        try await hear("call.accepted") { if case .call(.accepted(let call)) = $0 { call } else { nil } }
    }

    fileprivate func hearEnd() async throws -> CallNotice.Ended {
        try await hear("call.ended") { if case .call(.ended(let ended)) = $0 { ended } else { nil } }
    }

    fileprivate func log() async throws -> CallNotice.Log {
        let re = try await say(.call(.log(.init())))
        return try await hear("call.log") { message -> CallNotice.Log? in
            if case .call(.log(let log)) = message, log.re == re { log } else { nil }
        }
    }
}
