import Signaling
import TestSupport
import Testing
import Wire

/// Texts that a terminal, a browser or a database could misread, in every place where people send text: they arrive unchanged,
/// or are refused.
@Suite struct HostileTextTests {
    private let stage = Stage {
        ($0.verbs, $0.personVerbs) = (.init(perSecond: 1000, burst: 10_000), .init(perSecond: 1000, burst: 10_000))
        ($0.interestWait, $0.maxInterests) = (.zero, 60)
        ($0.roomTalk, $0.roomKnocks) = (.init(perSecond: 1000, burst: 10_000), .init(perSecond: 1000, burst: 10_000))
    }

    /// Compares bytes, because Swift treats canonically equivalent strings as equal.
    private func isSame(_ left: String?, _ right: String?) -> Bool {
        left.map { Array($0.utf8) } == right.map { Array($0.utf8) }
    }

    /// Sends a message as text, as a client does, and returns the error of its answer.
    private func code(_ guest: Guest, _ json: String) -> WireError.Code? {
        do throws(UnreadableMessage) {
            return guest.ask(try Envelope<ClientMessage>.decode(Array(json.utf8)).message)?.errorCode
        } catch {
            return error.error.code
        }
    }

    private func quoted(_ text: String) -> String {
        var writer = JSONWriter()
        writer.string(text)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    @Test(arguments: HostileText.short) func aNameInTheRouletteArrivesUnchanged(text: String) {
        // One person sends the name in `hello`, and the other in `roulette.start`.
        let (ann, bob) = (stage.arrive(name: text), stage.arrive())
        ann.start()
        bob.start(name: text)
        #expect(ann.isMatched && isSame(ann.partner, text) && isSame(bob.partner, text))
    }

    @Test func sharedInterestsAreTrimmedAndInLowerCase() {
        let texts = HostileText.short.filter { $0.count <= 50 }
        let (ann, bob) = (stage.arrive(), stage.arrive())
        ann.start(texts)
        bob.start(texts.reversed())
        let expected = texts.map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ").lowercased() }
        #expect(Set(bob.match?.partner.interests ?? []) == Set(expected).subtracting([""]))
        // It has 50 characters and 256 bytes, but more in lower case, which the partner's client would refuse.
        let growing = String(repeating: "İ", count: 50) + String(repeating: "\u{301}", count: 78)
        #expect(stage.arrive().start([growing])?.errorCode == .invalidInterests)
    }

    @Test(arguments: HostileText.short + HostileText.long) func aSignalArrivesUnchanged(text: String) {
        let (session, ann, bob) = (stage.room(), stage.arrive(), stage.arrive())
        for guest in [ann, bob] { guest.enter(session, on: stage) }
        func heard() -> SessionNotice.Signal? {
            bob.take().compactMap { if case .session(.signal(let signal)) = $0 { signal } else { nil } }.last
        }
        if text.utf8.count <= Limits.signalData {
            #expect(ann.signal(session, "chat", text)?.type == "ok")
            #expect(isSame(heard()?.data, text))
        }
        let allowed = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_~".utf8)
        let isType = text.utf8.count <= 128 && text.utf8.allSatisfy(allowed.contains)
        #expect(ann.signal(session, text, "x")?.errorCode == (isType ? nil : .signalInvalid))
        #expect(isSame(heard()?.type, isType ? text : nil))
    }

    @Test(arguments: HostileText.short) func streamNamesConnectionDataAndChatArriveUnchanged(text: String) {
        let (session, ann, bob) = (stage.room(), stage.arrive(), stage.arrive())
        ann.enter(session, on: stage)
        #expect(isSame(bob.enter(session, data: text, on: stage)?.connection.data, text))
        #expect(isSame(bob.publish(session, name: text)?.name, text))
        let news = ann.take()
        #expect(
            news.contains {
                if case .session(.streamCreated(let new)) = $0 { isSame(new.stream.name, text) } else { false }
            })
        #expect(
            news.contains {
                if case .session(.connectionCreated(let new)) = $0 { isSame(new.connection.data, text) } else { false }
            })
        for guest in [ann, bob] { guest.open() }
        ann.take()
        let isLine = code(bob, #"{"type":"room.say","seq":1,"text":\#(quoted(text))}"#) == nil
        #expect(isLine == !text.isEmpty)
        #expect(isSame(ann.takeRooms().compactMap(\.said).first?.text, isLine ? text : nil))
    }

    /// Whether a name is safe to display.
    private func isInert(_ name: String) -> Bool {
        let directions: Set<UInt32> = [0x61C, 0x200E, 0x200F, 0x202A, 0x202B, 0x202C, 0x202D, 0x202E]
        return name.count <= 40 && name.utf8.count <= 160
            && name.unicodeScalars.first?.properties.isWhitespace == false
            && name.unicodeScalars.last?.properties.isWhitespace == false
            && name.unicodeScalars.allSatisfy {
                $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) && !directions.contains($0.value)
                    && !(0x2028...0x2029).contains($0.value) && !(0x2066...0x2069).contains($0.value)
            }
            && name.unicodeScalars.contains {
                !$0.properties.isWhitespace && !$0.properties.isDefaultIgnorableCodePoint
            }
    }

    /// Texts that meet one limit of names but not another, and invisible ones.
    private static let names = [
        String(repeating: "n", count: 40), String(repeating: "\u{1F600}", count: 40),
        " " + String(repeating: "n", count: 40),
        "e" + String(repeating: "\u{301}", count: 5_000), String(repeating: " ", count: 10_000), "\u{2069}",
        "\u{2800}\u{3164}\u{115F}", "a\u{A0}\u{3000} b", "\u{E0001}", "\u{FFF9}x\u{FFFB}", "\u{AD}",
        String(repeating: "\u{E9}", count: 30_000),
    ]

    @Test(arguments: HostileText.short + HostileText.long + names)
    func theNameOfAPersonIsSafeToShowOrRefusedAndTheOldOneStays(text: String) {
        let (ann, bob) = (stage.present("Ann"), stage.present("Bob"))
        let answer = ann.set(name: text)
        let shown = answer?.own?.name ?? "Ann"
        #expect(answer?.own != nil || answer?.errorCode == .invalidName)
        #expect(isInert(shown), "it became \(shown.debugDescription)")
        #expect(isSame(bob.find(stage.person(ann))?.found?.name, shown))
        bob.take()
        ann.call(stage.person(bob))
        #expect(isSame(bob.takeCalls().first?.incoming?.person.name, shown))
        let joined = ann.open(as: text)
        if let name = joined?.room?.joined?.people.first?.displayName {
            #expect(isInert(name), "it became \(name.debugDescription)")
        } else {
            #expect(joined?.errorCode == .invalidName)
        }
    }

    @Test(
        arguments: HostileText.short + HostileText.long + [
            String(repeating: "A", count: 255), String(repeating: "A", count: 256), String(repeating: "0", count: 33),
            String(repeating: "g", count: 32), String(repeating: "٠", count: 32),
        ])
    func whatIsNoIDReachesNoSessionStreamConnectionOrMatch(text: String) {
        let (guest, session, id) = (stage.arrive(), stage.room(), quoted(text))
        for message in [
            #"{"type":"session.leave","sessionId":\#(id)"#, #"{"type":"session.signal","sessionId":\#(id),"data":"x""#,
            #"{"type":"session.signal","sessionId":"\#(session)","to":\#(id)"#,
            #"{"type":"session.unpublish","sessionId":"\#(session)","streamId":\#(id)"#,
            #"{"type":"session.forceDisconnect","sessionId":"\#(session)","connectionId":\#(id)"#,
            #"{"type":"roulette.block","matchId":\#(id)"#,
        ] {
            let refusal = code(guest, message + #","seq":1}"#)
            #expect(
                [.malformed, .sessionInvalid, .notJoined].contains(refusal), "\(message): \(refusal?.rawValue ?? "")")
        }
    }
}
