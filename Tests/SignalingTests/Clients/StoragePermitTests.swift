import Signaling
import TestSupport
import Testing
import Wire

/// What clients can do while the disk is nearly full, or after their network has stored too much.
@Suite("Permits to store") struct StoragePermitTests {
    private let stage = Stage()
    private let full = WireError(.storageFull, "Later.", retryable: true, retryAfter: .seconds(60))
    private let quota = WireError(.storageQuota, "Later.", retryable: true, retryAfter: .seconds(3600))

    private var reports: [Report] {
        stage.changes.compactMap { if case .report(let report) = $0 { report } else { nil } }
    }

    private var profiles: Int { stage.changes.count { if case .profile = $0 { true } else { false } } }

    @Test func `a new profile is refused while only what is essential is stored`() {
        let ada = stage.arrive()
        stage.permit = .essential(full)
        guard case .error(let refusal)? = ada.appear("Ada") else { return #expect(Bool(false), "not refused") }
        #expect(refusal.error == full)
        #expect(stage.changes.isEmpty)
        stage.permit = .all
        #expect(ada.appear("Ada")?.type == "presence.self")
        #expect(profiles == 1)
    }

    @Test func `a person who is known goes online as before, and cannot change the profile`() {
        let identity = stage.identity()
        stage.arrive(identity).appear("Ada")
        stage.permit = .essential(full)
        let again = stage.arrive(identity)
        #expect(again.appear()?.own?.name == "Ada")
        #expect(again.set(name: "Eva")?.errorCode == .storageFull)
        #expect(again.set(doNotDisturb: true)?.errorCode == .storageFull)
        #expect(again.set(name: "Ada")?.own?.name == "Ada", "nothing has changed")
        #expect(profiles == 1)
    }

    @Test func `push endpoints, links and contacts are optional`() {
        let (ada, bob, matched) = stage.pair()
        for guest in [ada, bob] { guest.appear() }
        let code = ada.linkCode() ?? ""
        let push = PushRegistration(kind: .web, endpoint: "https://push.example/1")
        stage.permit = .essential(full)
        let count = stage.changes.count
        let keep = ContactVerb.keep(MeetingReference(match: matched.match))
        #expect(ada.ask(.push(.register(push)))?.errorCode == .storageFull)
        #expect(bob.useLink(code)?.errorCode == .storageFull)
        #expect(ada.ask(.contact(keep))?.errorCode == .storageFull)
        #expect(stage.changes.count == count)
        #expect(stage.archive.endpoints.isEmpty)
        #expect(ada.ask(.push(.unregister(.init(endpoint: push.endpoint))))?.type == "ok")
    }

    @Test func `blocks and reports are essential, and a report then has no chat lines`() {
        let (ada, bob, matched) = stage.pair()
        for guest in [ada, bob] { guest.join(matched.publish.session, token: guest.match?.publish.token ?? "") }
        bob.signal(matched.publish.session, "chat", "something rude")
        stage.permit = .essential(full)
        #expect(ada.report("Was rude.")?.type == "ok")
        #expect(reports.map(\.reason) == ["Was rude."])
        #expect(reports.first?.lines == [])
        #expect(ada.ask(.roulette(.block(.init(match: matched.match))))?.type == "ok")
        #expect(stage.changes.last == .block(owner: ada.identity, blocked: bob.identity, at: stage.now))
    }

    @Test func `if nothing is stored, requests that store something are refused, and all others work`() {
        let (ada, _, matched) = stage.pair()
        ada.appear("Ada")
        stage.permit = .none(quota)
        let count = stage.changes.count
        #expect(ada.report()?.errorCode == .storageQuota)
        #expect(ada.ask(.roulette(.block(.init(match: matched.match))))?.errorCode == .storageQuota)
        #expect(ada.ask(.presence(.delete))?.errorCode == .storageQuota)
        #expect(ada.call(stage.project.personID(of: ada.person))?.errorCode == .storageQuota)
        #expect(stage.changes.count == count)
        #expect(ada.ask(.roulette(.next(.init())))?.errorCode == nil)
        #expect(ada.appear()?.type == "presence.self")
        #expect(ada.closeCode == nil)
    }

    @Test func `the permit ends with its event`() {
        let ada = stage.arrive()
        stage.permit = .none(quota)
        #expect(ada.appear("Ada")?.errorCode == .storageQuota)
        stage.permit = .all
        #expect(ada.appear("Ada")?.type == "presence.self")
    }

    @Test func `a push endpoint is refused until the person has been online`() {
        let ada = stage.arrive()
        let push = PushRegistration(kind: .web, endpoint: "https://push.example/1")
        #expect(ada.ask(.push(.register(push)))?.errorCode == .notPresent)
        #expect(stage.archive.endpoints.isEmpty)
        ada.appear()
        #expect(ada.ask(.push(.register(push)))?.type == "ok")
        ada.leave()
        #expect(stage.arrive(ada.identity).ask(.push(.register(push)))?.type == "ok", "the profile is stored")
    }

    @Test func `the use of a profile is stored at most once a day`() {
        let identity = stage.identity()
        stage.arrive(identity).appear("Ada")
        #expect(profiles == 1)
        stage.pass(.seconds(86_399))
        stage.arrive(identity).appear()
        #expect(profiles == 1)
        stage.pass(.seconds(1))
        stage.permit = .essential(full)
        stage.arrive(identity).appear()
        #expect(profiles == 1, "this can wait")
        stage.permit = .all
        stage.arrive(identity).appear()
        stage.arrive(identity).appear()
        #expect(profiles == 2)
        #expect(stage.archive.record(of: identity).profileUsedAt == stage.now)
    }
}
