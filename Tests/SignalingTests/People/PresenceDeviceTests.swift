@testable import Signaling
import TestSupport
import Testing
import Wire

/// One person on several devices.
@Suite struct PresenceDeviceTests {
    private let stage = Stage()

    /// Returns a person's two devices. The second one was linked.
    private func linked() throws -> (ada: Guest, phone: Guest) {
        let (ada, phone) = (stage.arrive(), stage.arrive())
        ada.appear("Ada")
        phone.useLink(try #require(ada.linkCode()), label: "Phone")
        phone.arrive()
        phone.appear()
        ada.take()
        phone.take()
        return (ada, phone)
    }

    @Test func aDeviceThatEntersTheCodeBecomesThePersons() throws {
        let (ada, phone) = (stage.arrive(), stage.arrive())
        let tab = stage.arrive(phone.identity)
        ada.appear("Ada")
        let code = try #require(ada.linkCode())
        #expect(code.count == 9)
        let answer = phone.useLink(code, label: " My  phone ")
        guard case .presence(.linked(let reported))? = answer else {
            Issue.record("\(String(describing: answer))")
            return
        }
        #expect(reported.person == stage.person(ada))
        #expect(phone.closeCode == .replaced)
        #expect(phone.refusals.map(\.code) == [.replaced])
        #expect(tab.closeCode == .replaced, "it is the same device")
        phone.arrive()
        #expect(phone.appear()?.own?.name == "Ada")
        let devices = try #require(ada.devices)
        #expect(devices.map(\.label) == ["First device", "My phone"])
        #expect(devices.map(\.current) == [true, false])
        #expect(devices.map(\.present) == [true, true])
        #expect(devices.map(\.linkedAt) == [nil, stage.now])
        #expect(phone.devices?.map(\.current) == [false, true])
    }

    @Test func aLinkSurvivesARestart() throws {
        let (ada, phone) = try linked()
        stage.restart()
        phone.arrive()
        #expect(phone.appear()?.own?.person == stage.project.personID(of: ada.identity))
        #expect(phone.devices?.count == 2)
    }

    @Test func aLinkedDevicesBlocksBecomeThePersons() throws {
        let (ada, phone, eve) = (stage.arrive(), stage.arrive(), stage.arrive())
        for guest in [ada, phone, eve] { guest.appear() }
        phone.block(person: stage.person(eve))
        phone.useLink(try #require(ada.linkCode()))
        #expect(eve.find(stage.person(ada))?.found?.online == false)
        #expect(ada.blockedPeople?.map(\.id) == [stage.blocked(eve, by: ada)])
        stage.restart()
        ada.arrive()
        #expect(ada.blockedPeople?.count == 1)
    }

    @Test func twoDevicesAreListedOnceAndNotForThemselves() throws {
        let (ada, phone) = try linked()
        ada.move(52.5, 13.4)
        let ben = stage.nearby("Ben", 52.5, 13.4)
        #expect(ben.watch()?.names == ["Ada"])
        #expect(phone.watch()?.names == ["Ben"])
        ada.drop()
        #expect(ben.watch()?.names == ["Ada"], "the other device is still here")
        phone.drop()
        #expect(ben.watch()?.names == [])
    }

    // MARK: Codes

    @Test func codesAreAcceptedAsPeopleTypeThem() throws {
        let ada = stage.arrive()
        ada.appear()
        for spelling in [
            { $0.lowercased() }, { $0.filter { $0 != "-" } }, { " \($0) " }, { $0.replacing("0", with: "o") },
            { $0.replacing("1", with: "l") }, { $0.replacing("1", with: "I") },
        ] as [(String) -> String] {
            let phone = stage.arrive()
            let code = try #require(ada.linkCode())
            #expect(phone.useLink(spelling(code))?.presence != nil, "\(code)")
            ada.ask(.presence(.unlink(.init(device: stage.project.personID(of: phone.identity)))))
        }
    }

    @Test func onlyTheLastCodeIsValidOnceForFiveMinutes() throws {
        let ada = stage.arrive()
        ada.appear()
        let devices = (0..<4).map { _ in stage.arrive() }
        let first = try #require(ada.linkCode())
        let second = try #require(ada.linkCode())
        #expect(devices[0].useLink(first)?.errorCode == .linkInvalid, "a new code revokes the old one")
        #expect(devices[0].useLink(second)?.presence != nil)
        #expect(devices[1].useLink(second)?.errorCode == .linkInvalid, "the code was already used")
        let third = try #require(ada.linkCode())
        stage.pass(.milliseconds(299_999))
        #expect(devices[1].useLink(third)?.presence != nil)
        let fourth = try #require(ada.linkCode())
        stage.pass(.seconds(300))
        #expect(devices[2].useLink(fourth)?.errorCode == .linkInvalid, "the code has expired")
    }

    @Test func aCodeIsValidAfterItsDeviceLeft() throws {
        let (ada, phone) = (stage.arrive(), stage.arrive())
        ada.appear("Ada")
        let code = try #require(ada.linkCode())
        ada.leave()
        stage.pass(.seconds(200))
        #expect(phone.useLink(code)?.presence != nil)
        phone.arrive()
        #expect(phone.appear()?.own?.name == "Ada")
        phone.leave()
        stage.pass(.seconds(3600))
        #expect(stage.hub.personCount == 0)
    }

    @Test(arguments: ["", "-", "ABCD-EFGH", "ABCD-EFG", "ABCD-EFGU", "ABCDEFGHJ", "🐙🐙🐙🐙🐙🐙🐙🐙", "abcd\u{0}efg"])
    func invalidCodesLinkNothing(code: String) {
        let phone = stage.arrive()
        #expect(phone.useLink(code)?.errorCode == .linkInvalid)
        #expect(phone.socket != nil)
    }

    @Test func guessingIsLimitedByAddress() throws {
        let ada = stage.arrive()
        ada.appear()
        let code = try #require(ada.linkCode())
        let eve = stage.arrive(address: "203.0.113.7")
        for _ in 0..<10 { #expect(eve.useLink("0000-0000")?.errorCode == .linkInvalid) }
        let other = stage.arrive(address: "203.0.113.7")
        guard case .error(let refusal)? = other.useLink(code) else {
            Issue.record("another identity can continue to guess")
            return
        }
        #expect(refusal.error.code == .rateLimited)
        #expect(refusal.error.retryAfter == .seconds(6))
        #expect(stage.arrive(address: "203.0.113.8").useLink(code)?.presence != nil)
    }

    @Test func codesAreLimitedByPerson() throws {
        let (ada, phone) = try linked()
        // One code was already created for the phone.
        for number in 0..<9 { #expect((number % 2 == 0 ? ada : phone).linkCode() != nil) }
        guard case .error(let refusal)? = phone.ask(.presence(.link)) else {
            Issue.record("an eleventh code is created")
            return
        }
        #expect(refusal.error.code == .rateLimited)
        #expect(refusal.error.retryAfter == .seconds(6))
        #expect(ada.linkCode() == nil)
        let ben = stage.present("Ben")
        #expect(ben.linkCode() != nil, "others may")
        stage.pass(.seconds(6))
        #expect(ada.linkCode() != nil)
    }

    @Test func expiredCodesUseNoPlace() {
        var codes = DeviceCodes()
        let hubSettings = HubSettings(rules: stage.rules, project: stage.project)
        var context = Context(hubSettings, generator: SeededGenerator(seed: 1))
        context.now = stage.now
        let client = ConnectionID(high: 0, low: 1)
        func make(_ owner: IdentityID) -> Letter? {
            codes.handle(.make(owner, client, re: 1), &context)
            defer { while context.nextLetter() != nil {} }
            return context.letters.first
        }
        let (ada, ben) = (stage.identity(), stage.identity())
        for _ in 0..<100_000 { _ = make(ada) }
        guard case .client(_, .deliver(.presence(.linkCode)))? = make(ben) else {
            Issue.record("there is no code left for Ben")
            return
        }
    }

    @Test func aRefusedLinkHasAReason() throws {
        let (ada, phone) = try linked()
        let (ben, carol) = (stage.arrive(), stage.arrive())
        ben.appear()
        #expect(ada.useLink(try #require(ada.linkCode()))?.errorCode == .linkInvalid, "oneself")
        #expect(phone.useLink(try #require(ben.linkCode()))?.errorCode == .linkInvalid, "linked already")
        #expect(ada.useLink(try #require(ben.linkCode()))?.errorCode == .linkInvalid, "Ada has linked devices")
        #expect(carol.useLink(try #require(ben.linkCode()), label: "a\nb")?.errorCode == .invalidName)
        #expect(ada.devices?.count == 2)
    }

    @Test func devicesPerPersonAreLimited() throws {
        let stage = Stage { $0.devicesPerPerson = 3 }
        let ada = stage.arrive()
        ada.appear()
        for _ in 0..<2 { #expect(stage.arrive().useLink(try #require(ada.linkCode()))?.presence != nil) }
        #expect(ada.ask(.presence(.link))?.errorCode == .linkInvalid)
        #expect(ada.devices?.count == 3)
    }

    // MARK: Unlinking

    @Test func anUnlinkedDeviceIsItsOwnPersonAgain() throws {
        let (ada, phone) = try linked()
        let device = stage.project.personID(of: phone.identity)
        let code = try #require(phone.linkCode())
        #expect(ada.ask(.presence(.unlink(.init(device: device))))?.type == "ok")
        #expect(phone.take().contains(.presence(.unlinked)))
        #expect(phone.closeCode == .replaced)
        phone.arrive()
        #expect(phone.appear()?.own?.person == device)
        #expect(phone.useLink(code)?.errorCode == .linkInvalid, "the device's earlier code is revoked")
        #expect(ada.devices?.count == 1)
    }

    @Test func theFirstDeviceCanBeUnlinked() throws {
        let (ada, phone) = try linked()
        let id = stage.person(ada)
        #expect(phone.ask(.presence(.unlink(.init(device: id))))?.type == "ok")
        #expect(ada.closeCode == .replaced)
        let before = ada.identity
        ada.arrive()
        #expect(ada.identity != before)
        #expect(ada.appear()?.own?.person != id)
        #expect(phone.devices?.map(\.label) == ["Phone"])
        #expect(phone.set(visible: true)?.own?.person == id)
        stage.restart()
        phone.arrive()
        phone.appear()
        #expect(phone.devices?.map(\.label) == ["Phone"])
        let last = stage.project.personID(of: phone.identity)
        #expect(phone.ask(.presence(.unlink(.init(device: last))))?.errorCode == .notPermitted)
    }

    @Test func aDeviceMayUnlinkItself() throws {
        let (_, phone) = try linked()
        phone.ask(.presence(.unlink(.init(device: stage.project.personID(of: phone.identity)))))
        #expect(phone.closeCode == .replaced)
    }

    @Test func theOnlyDeviceCannotBeUnlinked() {
        let ada = stage.arrive()
        ada.appear()
        #expect(ada.ask(.presence(.unlink(.init(device: stage.person(ada)))))?.errorCode == .notPermitted)
        #expect(ada.socket != nil)
    }

    // MARK: Deleting

    @Test func aDeletedPersonIsRemovedEverywhere() throws {
        let (ada, phone) = try linked()
        ada.move(52.5, 13.4)
        let ben = stage.nearby("Ben", 52.5, 13.4)
        let id = stage.person(ada)
        #expect(ben.watch()?.names == ["Ada"])
        ada.watch()
        let code = try #require(ada.linkCode())
        #expect(phone.ask(.presence(.delete))?.type == "ok")
        for guest in [ada, phone] {
            #expect(guest.take().contains(.presence(.deleted)))
            #expect(guest.closeCode == .replaced)
        }
        stage.pass(.seconds(1))
        #expect(ben.takeChanges().map(\.gone) == [[id]])
        #expect(ben.find(id)?.errorCode == .notFound)
        #expect(stage.arrive().useLink(code)?.errorCode == .linkInvalid)
        #expect(stage.changes.last == .deleted(ada.person))
        let person = ada.person
        for guest in [ada, phone] {
            guest.arrive()
            #expect(guest.appear()?.own?.person != id, "the deleted person's secret is invalid now")
        }
        #expect(ada.person != person)
        #expect(ada.devices?.count == 1)
    }

    // MARK: Stale results from storage

    @Test(arguments: [true, false]) func recordsFromBeforeADeletionAreIgnored(isGone: Bool) throws {
        let (ada, ben) = (stage.present("Ada"), stage.present("Ben"))
        let id = stage.person(ada)
        stage.isStorageSlow = true
        ben.say(.presence(.find(.init(person: id))))
        ben.say(.call(.start(.init(person: id, video: true))))
        if isGone { ada.ask(.presence(.delete)) } else { ada.take() }
        stage.hearStorage()
        let codes = ben.take().compactMap(\.errorCode)
        #expect(codes == (isGone ? [.notFound, .notFound] : []))
        #expect(ben.openRequests == 0)
        #expect(stage.hub.personCount == (isGone ? 1 : 2))
        #expect(stage.hub.callCount == (isGone ? 0 : 1))
        #expect(ben.find(id)?.found?.online == (isGone ? nil : true), "the next answer is not affected either")
    }

    @Test func recordsFromBeforeALinkAreIgnored() throws {
        let (ada, phone, ben) = (stage.present("Ada"), stage.present("Phone"), stage.present("Ben"))
        let id = stage.project.personID(of: phone.identity)
        stage.isStorageSlow = true
        ben.say(.presence(.find(.init(person: id))))
        phone.useLink(try #require(ada.linkCode()))
        stage.hearStorage()
        #expect(ben.take().compactMap(\.errorCode) == [.notFound])
        #expect(ben.find(id)?.errorCode == .notFound)
        phone.arrive()
        phone.appear()
        #expect(ben.find(id)?.errorCode == .notFound)
        #expect(ben.call(id)?.errorCode == .notFound)
        ada.ask(.presence(.unlink(.init(device: id))))
        phone.arrive()
        #expect(phone.appear()?.own?.person == id)
        #expect(ben.find(id)?.found?.online == true, "the unlinked device is a separate person again")
    }

    @Test func aDeletedPersonLeavesNothingInMemory() {
        let (ada, ben, _) = stage.pair()
        ada.appear()
        ada.ask(.presence(.delete))
        #expect(ben.takeEnds() == [.partnerLeft])
        #expect(stage.hub.personCount == 1)
        #expect(stage.hub.matchCount == 0)
    }
}
