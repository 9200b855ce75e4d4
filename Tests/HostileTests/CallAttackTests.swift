import Foundation
import Signaling
import Testing
import Wire

extension Person {
    /// Waits until the call rings here and accepts it.
    fileprivate func take(_ call: CallID) throws -> CallNotice.Accepted {
        try hearRing(call)
        try say(.call(.accept(.init(call: call, video: true))))
        return try hearAccepted(call)
    }

    fileprivate func end(_ call: CallID) throws {
        guard try verdict(.call(.end(.init(call: call)))) == "ok" else { throw TimedOut("\(call) was not ended") }
    }
}

extension Hostile {
    @Suite("Case 23: calls") struct CallAttacks {
        private static let settings = [
            "CONFAB_LIMITS_HANDSHAKE_BURST": "100000", "CONFAB_LIMITS_REQUEST_BURST": "1000",
            "CONFAB_STORAGE_POLL_INTERVAL": "20ms",
        ]

        /// Makes one person call another, who accepts, and waits until both have joined the call's session.
        private static func talk(
            _ caller: Person, _ callee: Person, _ id: PersonID
        ) throws -> (call: CallID, caller: Admission, callee: Admission) {
            let call = try caller.place(id)
            let taken = try callee.take(call).admission
            let letIn = try caller.hearAccepted(call).admission
            for (person, admission) in [(caller, letIn), (callee, taken)] { _ = try person.join(admission) }
            return (call, letIn, taken)
        }

        @Test("mutual calls merge into one, and three calls in a circle do not connect automatically")
        func glare() async throws {
            try await Attack(number: 23, name: "calling each other", settings: Self.settings).run { server in
                var (calls, merged) = (0, 0)
                for round in 0..<12 {
                    let pair = try (0..<2).map { try Person.present("\($0)", port: server.port) }
                    for (person, other) in zip(pair, pair.reversed()).map({ ($0.person, $1.id) }) {
                        try person.say(.call(.start(.init(person: other, video: round % 2 == 0))))
                    }
                    let people = pair.map(\.person)
                    let entered = try people.map { person in
                        try person.hear("call.accepted") {
                            if case .call(.accepted(let accepted)) = $0 { accepted } else { nil }
                        }
                    }
                    let call = entered[0].call
                    #expect(entered[1].call == call && entered[0].admission.session == entered[1].admission.session)
                    #expect(entered[0].admission.token != entered[1].admission.token)
                    for (person, accepted) in zip(people, entered) { _ = try person.join(accepted.admission) }
                    try people[round % 2].end(call)
                    for person in people {
                        #expect([.ended, .hungUp].contains(try person.hearEnd(call).reason))
                        #expect(try person.log().map(\.call) == [call], "one call in the log as well")
                        #expect(person.entered.count == 1)
                        for case .ended(let ended) in person.callNews where ended.call != call {
                            #expect(ended.reason == .merged && ended.into == call)
                            merged += 1
                        }
                    }
                    calls += 1
                }
                try Self.circle(server)
                return AttackOutcome(
                    sent: "\(calls) pairs at once, 1 circle of three",
                    cameBack: "\(calls) calls, \(merged) × merged, 1 call of the circle")
            }
        }

        /// Makes three people call each other in a circle. One of them then accepts the incoming call.
        private static func circle(_ server: ServerProcess) throws {
            let three = try (0..<3).map { try Person.present("\($0)", port: server.port) }
            for (person, other) in zip(three, three.dropFirst() + three.prefix(1)) {
                try person.person.say(.call(.start(.init(person: other.id, video: true))))
            }
            let people = three.map(\.person)
            let placed = try people.map { person in
                try person.hear("call.placed") { if case .call(.placed(let placed)) = $0 { placed.call } else { nil } }
            }
            for (person, call) in zip(people, placed.suffix(1) + placed) { try person.hearRing(call) }
            // Accepting this call ends the person's own outgoing call.
            _ = try people[0].take(placed[2])
            _ = try people[2].hearAccepted(placed[2])
            #expect(try people[0].hearEnd(placed[0]).direction == .outgoing)
            #expect(try people[1].hearEnd(placed[0]).direction == .incoming)
            #expect(try people[1].verdict(.call(.accept(.init(call: placed[0], video: true)))) == "not_found")
            #expect(people.map(\.entered.count) == [1, 0, 1])
        }

        @Test("a person with two tabs is in only one call, even if both tabs call or accept at the same time")
        func tabs() async throws {
            try await Attack(number: 23, name: "two tabs each", settings: Self.settings).run { server in
                var tally = Tally()
                let sides = try ["Ann", "Bob"].map { name in
                    let secret = try #require(try Person.arrive(port: server.port).welcome.identity)
                    return try (0..<2).map { _ in try Person.present(name, port: server.port, identity: secret) }
                }
                let (anns, bobs, bobID) = (sides[0].map(\.person), sides[1].map(\.person), sides[1][0].id)
                func together(_ tabs: [Person], _ verb: CallVerb, _ others: Set<String>) throws -> Person {
                    let asked = try tabs.map { try $0.say(.call(verb)) }
                    let verdicts = try zip(tabs, asked).map { try $0.hearReply(to: $1).verdict }
                    for verdict in verdicts { tally.count(verdict) }
                    let done = zip(tabs, verdicts).filter { !others.contains($1) }.map(\.0)
                    return try #require(done.count == 1 ? done[0] : nil, "\(verdicts)")
                }
                for _ in 0..<5 {
                    let start = CallVerb.start(.init(person: bobID, video: true))
                    let ann = try together(anns, start, ["elsewhere"])
                    for bob in bobs {
                        try bob.hear("ring") { if case .call(.incoming) = $0 { () } else { nil } }
                    }
                    let call = try #require(bobs[0].rung.last)
                    let bob = try together(bobs, .accept(.init(call: call, video: true)), ["call_state"])
                    for person in [ann, bob] { _ = try person.join(person.hearAccepted(call).admission) }
                    #expect((anns + bobs).flatMap(\.entered).count { $0.call == call } == 2)
                    for tab in anns + bobs { try tab.say(.call(.end(.init(call: call)))) }
                    for person in [ann, bob] { #expect(try person.hearEnd(call).duration != nil) }
                }
                for tab in anns + bobs { #expect(try tab.log().count == 5) }
                return AttackOutcome(sent: "5 calls by 2 tabs to 2 tabs", cameBack: tally.text)
            }
        }

        @Test("blocked and banned people cannot call, and their calls end")
        func blockedAndBanned() async throws {
            try await Attack(number: 23, name: "rings after block and ban", settings: Self.settings).run { server in
                let (forging, project) = (try await Forging(server), try server.project())
                var tally = Tally()
                let (bob, bobID) = try Person.present("Bob", port: server.port)
                let (eve, eveID) = try Person.present("Eve", port: server.port)
                let ringing = try eve.place(bobID)
                try bob.hearRing(ringing)
                #expect(try bob.verdict(.presence(.block(.init(person: eveID)))) == "ok")
                #expect(try eve.hearEnd(ringing).reason == .declined)
                #expect(try bob.verdict(.call(.accept(.init(call: ringing, video: true)))) == "not_found")
                _ = try bob.log()
                bob.forget()
                // The expected result: a person with the same settings whose page was closed.
                let (cid, cidID) = try Person.present("Bob", port: server.port)
                try cid.close()
                try cid.hearClose()
                try eventually("the page that was closed is there") { try !bob.isOnline(cidID) }
                let absent = try eve.learn(of: cidID)
                for _ in 0..<3 { #expect(try eve.learn(of: bobID) == absent) }
                let answers = [
                    "presence.person Bob false", "placed Bob false", "ended unreachable Bob false", "call.log",
                ]
                #expect(absent == answers)
                tally.count("as if absent")
                #expect(try bob.verdict(.presence(.find(.init(person: eveID)))) == "not_found")
                #expect(try bob.verdict(.call(.start(.init(person: eveID, video: true)))) == "call_not_allowed")
                #expect(try bob.log().map(\.call) == [ringing] && bob.callNews.count == 1, "\(bob.callNews)")
                // Ban people while their call rings, and while their call is active.
                for (user, isTalking) in [("mallory", false), ("trudy", true)] {
                    let token = forging.token(forging.userClaims(user))
                    let (culprit, id) = try Person.present(user, port: server.port, token: token)
                    var call: CallID
                    var tokens: [Admission] = []
                    if isTalking {
                        let talk = try Self.talk(culprit, bob, bobID)
                        (call, tokens) = (talk.call, [talk.caller, talk.callee])
                    } else {
                        call = try culprit.place(bobID)
                        try bob.hearRing(call)
                    }
                    _ = try await server.command(["ban", "add", "\(project.identity(ofUser: user))"])
                    #expect(try culprit.hearClose() == 4403)
                    #expect(try bob.hearEnd(call).reason == (isTalking ? .hungUp : .cancelled))
                    #expect(try server.verdict(helloToken: token) == "banned 4403")
                    try server.expectOver(tokens, &tally)
                    let reason = try bob.hearEnd(bob.place(id)).reason
                    tally.count(reason.rawValue)
                    #expect(reason == .unreachable)
                }
                return AttackOutcome(
                    sent: "4 rings of somebody blocked, 2 bans, 2 calls of the banned", cameBack: tally.text)
            }
        }

        /// Returns every verb that refers to a call.
        private static func verbs(_ call: CallID) -> [ClientMessage] {
            let answer = CallVideo(call: call, video: true)
            return [
                .call(.accept(answer)), .call(.decline(.init(call: call))), .call(.cancel(.init(call: call))),
                .call(.end(.init(call: call))), .call(.update(answer)), .call(.rejoin(.init(call: call))),
                .contact(.keep(.init(call: call))),
            ]
        }

        @Test("a call of other people cannot be answered, yields no token, and continues")
        func forged() async throws {
            var random = Random(ofCase: 23)
            try await Attack(number: 23, name: "calls of others", settings: Self.settings).run { server in
                let people = try (0..<5).map { try Person.present("\($0)", port: server.port) }
                let (ann, bob, eve) = (people[0].person, people[1].person, people[2].person)
                var tally = Tally()
                func attack(_ call: CallID) throws {
                    for verb in Self.verbs(call) {
                        let verdict = try eve.verdict(verb)
                        tally.count(verdict)
                        #expect(verdict == "not_found", "\(verb)")
                    }
                    // `seen` and `forget` only affect the sender's own log.
                    for verb in [CallVerb.seen(.init(call: call)), .forget(.init(call: call))] {
                        #expect(try eve.verdict(.call(verb)) == "ok")
                    }
                }
                let call = try ann.place(people[1].id)
                try bob.hearRing(call)
                try attack(call)
                let taken = try bob.take(call).admission
                try attack(call)
                let letIn = try ann.hearAccepted(call).admission
                for (person, admission) in [(ann, letIn), (bob, taken)] { _ = try person.join(admission) }
                // Nobody can join with a token of another call, or with the token of another person in this call.
                let other = try Self.talk(people[3].person, people[4].person, people[4].id)
                let stolen = [(other.caller.token, "token_session 4401"), (taken.token, "token_identity 4401")]
                for (token, expected) in stolen {
                    let verdict = try server.verdict(join: taken.session, token)
                    tally.count(verdict)
                    #expect(verdict == expected)
                }
                for _ in 0..<20 { try attack(CallID.random(using: &random)) }
                for _ in 0..<20 {
                    let nobody = PersonID.random(using: &random)
                    let verdict = try eve.verdict(.call(.start(.init(person: nobody, video: true))))
                    tally.count(verdict)
                    #expect(verdict == "not_found")
                }
                #expect(try eve.log().isEmpty && eve.callNews.allSatisfy { if case .log = $0 { true } else { false } })
                #expect(ann.end(of: call) == nil && bob.end(of: call) == nil)
                try ann.end(call)
                for (person, reason) in [(ann, CallOutcome.ended), (bob, .hungUp)] {
                    let end = try person.hearEnd(call)
                    #expect(end.reason == reason && end.duration != nil)
                    #expect(try person.log().map(\.call) == [call])
                }
                try attack(call)
                try server.expectOver([letIn, taken], &tally)
                return AttackOutcome(sent: "\(tally.total) verbs and tokens for others' calls", cameBack: tally.text)
            }
        }

        @Test("call floods are limited per caller and per callee")
        func storms() async throws {
            try await Attack(number: 23, name: "ring storms", settings: Self.settings).run { server in
                var tally = Tally()
                let began = ContinuousClock.now
                /// The number of tokens that a budget has regained.
                func more(every period: Double) -> Int { Int((ContinuousClock.now - began).inSeconds / period) + 1 }
                let callees = try (0..<12).map { try Person.present("\($0)", port: server.port) }
                let secret = try #require(try Person.arrive(port: server.port).welcome.identity)
                let (eve, _) = try Person.present("Eve", port: server.port, identity: secret)
                let (tab, _) = try Person.present("Eve", port: server.port, identity: secret)
                // Make three unanswered calls to one person from either tab, and then call everyone.
                for _ in 0..<3 {
                    let call = try eve.place(callees[0].id)
                    #expect(try eve.verdict(.call(.cancel(.init(call: call)))) == "ok")
                    #expect(try eve.hearEnd(call).reason == .cancelled)
                }
                for person in [eve, tab] {
                    let again = ClientMessage.call(.start(.init(person: callees[0].id, video: true)))
                    let error = try person.hearAnswer(to: person.say(again))
                    #expect(error?.code == .rateLimited && error?.retryable == true)
                    #expect(try #require(error?.retryAfter) > .seconds(500))
                    tally.count("in vain")
                }
                var placed = 3
                for (person, id) in zip([eve, tab, eve, tab, eve, tab, eve, tab, eve], callees.dropFirst().map(\.id)) {
                    let answer = try person.ask(.call(.start(.init(person: id, video: false))))
                    tally.count(answer.verdict)
                    guard case .call(.placed(let call)) = answer else { continue }
                    placed += 1
                    try person.end(call.call)
                    _ = try person.hearEnd(call.call)
                }
                #expect(placed >= 6 && placed <= 6 + more(every: 10), "placed \(placed)")
                try Self.crowd(server, &tally, more)
                return AttackOutcome(sent: "80 callers, one with two tabs", cameBack: tally.text)
            }
        }

        /// Makes forty callers call at once, and then forty more one after another.
        private static func crowd(_ server: ServerProcess, _ tally: inout Tally, _ more: (Double) -> Int) throws {
            let callers = try (0..<40).map { try Person.present("\($0)", port: server.port).person }
            let (dan, danID) = try Person.present("Dan", port: server.port)
            for caller in callers { try caller.say(.call(.start(.init(person: danID, video: true)))) }
            let calls = try callers.map { caller in
                try caller.hear("call.placed") { if case .call(.placed(let placed)) = $0 { placed.call } else { nil } }
            }
            _ = try dan.log()
            #expect(dan.rung.count == 2, "one call rings, and a second one waits")
            for (caller, call) in zip(callers, calls) where !dan.rung.contains(call) {
                let reason = try caller.hearEnd(call).reason
                tally.count(reason.rawValue)
                #expect(reason == .busy)
            }
            #expect(try dan.log().count <= 20 + more(3))
            let first = try #require(dan.rung.first)
            _ = try dan.take(first)
            let (fay, fayID) = try Person.present("Fay", port: server.port)
            var rung = 0
            for _ in 0..<40 {
                let caller = try Person.present("Caller", port: server.port).person
                let call = try caller.place(fayID)
                try caller.say(.call(.end(.init(call: call))))
                let reason = try caller.hearEnd(call).reason
                tally.count(reason.rawValue)
                if reason != .busy { rung += 1 }
                try caller.close()
            }
            #expect(rung >= 20 && rung <= 20 + more(3), "called \(rung) times")
            // The callee's log contains all calls, and no call is still ringing.
            #expect(try fay.log().count == rung)
            #expect(fay.rung.count == rung && fay.rung.allSatisfy { fay.end(of: $0) != nil })
        }

        @Test("verbs in wrong states get their error codes, and the call continues")
        func wrongStates() async throws {
            try await Attack(number: 23, name: "verbs in wrong states", settings: Self.settings).run { server in
                let (ann, annID) = try Person.present("Ann", port: server.port)
                let (bob, bobID) = try Person.present("Bob", port: server.port)
                let newcomer = try Person.arrive(port: server.port)
                var tally = Tally()
                func refused(_ person: Person, _ code: String, _ verbs: [CallVerb]) throws {
                    for verb in verbs {
                        let verdict = try person.verdict(.call(verb))
                        tally.count(verdict)
                        #expect(verdict == code, "\(verb)")
                    }
                }
                func start(_ id: PersonID) -> CallVerb { .start(.init(person: id, video: true)) }
                try refused(newcomer, "not_present", [start(bobID)])
                try refused(ann, "call_self", [start(annID)])
                let call = try ann.place(bobID)
                try bob.hearRing(call)
                let (answer, this) = (CallVideo(call: call, video: false), CallVerb.CallReference(call: call))
                try refused(ann, "call_state", [.accept(answer), .decline(this), .update(answer)])
                try refused(ann, "elsewhere", [start(bobID)])
                try refused(bob, "call_state", [.cancel(this), .update(answer)])
                _ = try bob.take(call)
                _ = try ann.hearAccepted(call)
                for person in [ann, bob] { _ = try person.join(person.entered[0].admission) }
                for person in [ann, bob] {
                    try refused(person, "call_state", [.accept(answer), .decline(this), .cancel(this)])
                    try refused(person, "elsewhere", [start(person === ann ? bobID : annID)])
                    #expect(try person.verdict(.roulette(.start(.init()))) == "elsewhere")
                }
                #expect(try bob.verdict(.call(.update(answer))) == "ok")
                try ann.hear("call.changed") { if case .call(.changed(answer)) = $0 { () } else { nil } }
                #expect(ann.end(of: call) == nil && bob.end(of: call) == nil)
                try bob.end(call)
                #expect(try ann.hearEnd(call).reason == .hungUp)
                for person in [ann, bob] {
                    let all: [CallVerb] = [
                        .accept(answer), .decline(this), .cancel(this), .end(this), .update(answer), .rejoin(this),
                    ]
                    try refused(person, "not_found", all)
                }
                try Self.malformed(newcomer, &tally)
                return AttackOutcome(sent: "\(tally.total) verbs", cameBack: tally.text)
            }
        }

        /// Malformed messages. Few enough that the server keeps the connection open.
        private static func malformed(_ person: Person, _ tally: inout Tally) throws {
            let digits = String(repeating: "a", count: 10_000)
            for members in [
                "", #""callId":null"#, #""callId":1,"video":true"#, #""callId":"\#(digits)","video":true"#,
                #""callId":"../../etc/passwd","video":true"#, #""callId":"\#(digits.prefix(32))","video":"yes""#,
                #""callId":"\#(digits.prefix(31))\u0000","video":false"#,
            ] {
                let verdict = try person.verdict("call.accept", members: members)
                tally.count(verdict)
                #expect(verdict == "malformed", "\(members.prefix(60))")
            }
            #expect(try person.log().isEmpty)
        }
    }
}
