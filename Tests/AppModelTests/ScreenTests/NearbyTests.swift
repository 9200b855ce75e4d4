import Foundation
import Testing
import enum Wire.CallOutcome

@testable import AppModel
@testable import Confab

@Suite @MainActor struct NearbyTests {
    private let permissions = FakePermissions()
    private let location = FakeLocation()
    private final class Requests { var all: [NearbyRequest] = [] }
    private let requests = Requests()
    private let here = DevicePosition(latitude: 52.5, longitude: 13.4)

    private func model() -> NearbyModel {
        NearbyModel(unit: .miles, permissions: permissions, location: location) { [requests] in requests.all.append($0)
        }
    }

    /// A model that may use the location, and shares it.
    private func sharing() -> NearbyModel {
        permissions.statuses[.location] = .allowed
        let model = model()
        model.share()
        return model
    }

    /// A model that shows these people.
    private func listed(_ people: [Nearby.Neighbor], next: String? = nil) -> NearbyModel {
        let model = sharing()
        location.report(.position(here))
        model.handle(.success(Nearby.Page(people, next: next)))
        return model
    }

    private let ada = Nearby.Neighbor(id: "ada", name: "Ada", distance: 2, isBusy: false)
    private let bob = Nearby.Neighbor(id: "bob", name: "Bob", distance: 25, isBusy: true)

    @Test func off() { Golden.expect(model(), "Nearby", "off") }
    @Test(arguments: [(PermissionStatus.refused, "no permission"), (.restricted, "restricted")])
    func noPermission(status: PermissionStatus, state: String) {
        let model = model()
        model.share()
        #expect(permissions.asked == [.location])
        permissions.answer(status)
        Golden.expect(model, "Nearby", state)
    }
    @Test func locating() {
        let model = sharing()
        Golden.expect(model, "Nearby", "locating")
    }
    @Test func noPosition() {
        let model = sharing()
        location.report(.unavailable)
        Golden.expect(model, "Nearby", "no position")
    }
    @Test func loading() {
        let model = sharing()
        location.report(.position(here))
        #expect(requests.all == [.move(here), .watch(.miles, radius: 200, after: nil)])
        Golden.expect(model, "Nearby", "loading")
    }
    @Test func empty() { Golden.expect(listed([]), "Nearby", "empty") }
    @Test func list() { Golden.expect(listed([ada, bob], next: "more"), "Nearby", "list") }
    @Test func stale() {
        let model = listed([ada])
        model.connection(isUp: false)
        Golden.expect(model, "Nearby", "stale")
        model.connection(isUp: true)
        #expect(requests.all.last == .watch(.miles, radius: 200, after: nil))
    }
    @Test func failed() {
        let model = listed([])
        model.handle(.failure(ConfabError("rate_limited", "Too many requests. Wait a moment, then try again.")))
        Golden.expect(model, "Nearby", "error")
    }

    @Test(arguments: [PermissionStatus.refused, .restricted])
    func withoutPermissionNothingIsShared(status: PermissionStatus) {
        permissions.statuses[.location] = status
        let model = model()
        model.share()
        #expect(!model.isSharing)
    }
    @Test func locatingCanBeStopped() {
        let model = sharing()
        #expect(model.isSharing)
        #expect(!model.showsList)
        model.stopSharing()
        #expect(model.offersShare)
    }
    @Test func aListThatFailedOrWasNotAnsweredIsAskedForAgain() {
        for failure in [nil, ConfabError("failed", "Failed.")] {
            let model = listed([])
            model.radius = 10
            if let failure { model.handle(.failure(failure)) }
            requests.all = []
            model.connection(isUp: false)
            model.connection(isUp: true)
            #expect(requests.all == [.watch(.miles, radius: 10, after: nil)])
        }
    }
    @Test func aBusyPersonIsNotCalled() {
        let model = listed([ada, bob])
        model.call("bob", video: true)
        model.call("ada", video: false)
        #expect(requests.all.last == .call(Person(id: "ada", name: "Ada"), video: false))
        #expect(requests.all.count == 3)
    }
    @Test func theOtherUnitHasTheSameEdges() {
        let model = listed([])
        model.radius = 10
        model.unit = .kilometers
        #expect(model.radius == 16)
        #expect(requests.all.last == .watch(.kilometers, radius: 16, after: nil))
    }
    @Test func fartherPeopleAreOnTheNextPage() {
        let model = listed([ada], next: "cursor")
        model.showFarther()
        #expect(requests.all.last == .watch(.miles, radius: 200, after: "cursor"))
    }
    @Test(arguments: [(PermissionStatus.refused, NearbyModel.Status.refused(.refused)), (.notAsked, .off)])
    func aPermissionThatIsWithdrawnMakesTheServerForgetTheLocation(
        permission: PermissionStatus, status: NearbyModel.Status
    ) {
        let model = listed([ada])
        location.report(.forbidden(permission))
        #expect(model.status == status)
        #expect(!location.isRunning && !model.showsList && !model.isSharing)
        #expect(requests.all.suffix(2) == [.unwatch, .forgetPosition])
        permissions.statuses[.location] = .allowed
        model.share()
        location.report(.position(here))
        #expect(model.status == .loading, "the person allowed it again")
    }
    @Test func aLocationThatIsNotKnownYetMayFollow() {
        let model = sharing()
        location.report(.unavailable)
        #expect(model.status == .noPosition)
        location.report(.position(here))
        #expect(model.status == .loading)
    }
    @Test func stoppingForgetsThePosition() {
        let model = listed([ada])
        model.stopSharing()
        #expect(!location.isRunning)
        #expect(requests.all.suffix(2) == [.unwatch, .forgetPosition])
        model.handle(.success(Nearby.Page([ada])))
        #expect(model.rows.isEmpty, "a late page")
    }
}

@Suite @MainActor struct PeopleTests {
    private let clock = FakeClock()
    private final class Requests { var all: [PeopleRequest] = [] }
    private let requests = Requests()
    private let id = PersonID(text: String(repeating: "a", count: 32))!

    private func model() -> PeopleModel { PeopleModel(clock: clock) { [requests] in requests.all.append($0) } }

    private func calls() -> [Calls.Logged] {
        let ada = Person(id: id, name: "Ada")
        return [
            Calls.Logged(id: "1", isOutgoing: false, outcome: .missed, person: ada, isSeen: false),
            Calls.Logged(
                id: "2", isOutgoing: true, outcome: .hungUp, person: ada, video: false, duration: .seconds(750)),
            Calls.Logged(id: "3", isOutgoing: false, outcome: .cancelled, person: CallScript.bob),
        ]
    }

    private func person(online: Bool = true) -> PeopleModel {
        let model = model()
        model.handle(.contacts([Person(id: id, name: "Ada", isOnline: online)]))
        model.open(id)
        return model
    }

    @Test func loading() { Golden.expect(model(), "People", "contacts, loading") }
    @Test func noContacts() {
        let model = model()
        model.handle(.contacts([]))
        Golden.expect(model, "People", "contacts, none")
    }
    @Test func contacts() {
        let model = model()
        model.handle(
            .contacts([Person(id: id, name: "Ada", isOnline: true), Person(id: "b", name: "Bob", isOnline: false)]))
        Golden.expect(model, "People", "contacts")
    }
    @Test func missedBadge() {
        let model = model()
        model.handle(.contacts([]))
        model.handle(.log(calls(), next: nil, isFirstPage: true))
        #expect(model.missedCount == 1)
        Golden.expect(model, "People", "contacts, missed badge")
        model.page = .log
        #expect(model.missedCount == 0)
        #expect(requests.all == [.seen("1")])
    }
    @Test(arguments: [("ADA", PeopleModel.Search.bad), ("", .bad)]) func badLink(
        text: String, search: PeopleModel.Search
    ) {
        let model = model()
        model.findText = text
        model.find()
        #expect(model.search == search)
        Golden.expect(model, "People", text.isEmpty ? "find, nothing typed" : "find, bad link")
    }
    @Test func nobodyFound() {
        let model = model()
        model.findText = "https://chat.example.org/nearby#person=\(id)"
        model.find()
        #expect(requests.all == [.find(id)])
        model.handle(.found(nil))
        Golden.expect(model, "People", "find, nobody")
    }
    @Test func listsThatDoNotComeSayWhyAndCanBeAskedForAgain() {
        let model = model()
        model.load()
        model.handle(.failed(ConfabError("not_connected", "Not connected to the server.")))
        Golden.expect(model, "People", "contacts, not answered")
        model.page = .log
        Golden.expect(model, "People", "log, not answered")
        requests.all = []
        model.retry()
        #expect(requests.all == [.contacts, .log(before: nil)])
        model.handle(.contacts([]))
        #expect(model.troubleText.isEmpty)
    }
    @Test func aPersonWhoWasBlockedBeforeIsKnown() {
        let model = person()
        model.knows(blocked: [id])
        #expect(model.blockText == "Unblock")
        #expect(!model.canCall)
    }
    @Test func anotherAccountHasOtherPeople() {
        let model = person()
        model.handle(.log(calls(), next: "more", isFirstPage: true))
        model.reset()
        #expect(model.contactRows.isEmpty && model.logRows.isEmpty && model.person == nil)
    }
    @Test func online() { Golden.expect(person(), "People", "person, online") }
    @Test func offline() { Golden.expect(person(online: false), "People", "person, offline") }
    @Test func busy() {
        let model = person()
        model.nearby([Nearby.Neighbor(id: id, name: "Ada", distance: 2, isBusy: true)])
        #expect(!model.canCall)
        Golden.expect(model, "People", "person, busy")
    }
    @Test func blocked() {
        let model = person()
        model.toggleBlock()
        #expect(requests.all == [.block(id)])
        model.handle(.blocked(id))
        Golden.expect(model, "People", "person, blocked")
    }
    @Test func log() {
        let model = model()
        model.handle(.log(calls(), next: "more", isFirstPage: true))
        model.page = .log
        Golden.expect(model, "People", "log")
    }
    @Test func deletingAllCallsIsAskedForFirst() {
        let model = model()
        model.page = .log
        model.askToDeleteAllCalls()
        #expect(!model.asks, "there are none")
        model.handle(.log(calls(), next: nil, isFirstPage: true))
        requests.all = []
        model.askToDeleteAllCalls()
        Golden.expect(model, "People", "log, asked before deleting")
        model.asks = false
        #expect(model.question == nil && model.logRows.count == 3 && requests.all.isEmpty)
        model.confirm(.deleteAllCalls)
        #expect(requests.all == [.forget(nil)] && model.logRows.isEmpty)
    }
    @Test func removingAContactIsAskedForFirst() {
        let model = person()
        model.askToRemoveContact()
        Golden.expect(model, "People", "person, asked before removing")
        model.confirm(.removeContact(id))
        #expect(requests.all == [.removeContact(id)] && !model.asks)
        model.askToRemoveContact()
        model.handle(.removed(id))
        #expect(!model.asks, "the other person was first")
        model.confirm(.removeContact(id))
        #expect(requests.all == [.removeContact(id)])
        model.askToRemoveContact()
        #expect(!model.asks, "it is no contact any more")
    }
    @Test func emptyLog() {
        let model = model()
        model.page = .log
        Golden.expect(model, "People", "log, loading")
        model.handle(.log([], next: nil, isFirstPage: true))
        Golden.expect(model, "People", "log, empty")
    }
    @Test func aCallCanBeReturned() {
        let model = model()
        model.handle(.log(calls(), next: nil, isFirstPage: true))
        model.callBack("2")
        #expect(requests.all == [.call(Person(id: id, name: "Ada"), video: false)])
    }
    @Test func everyOutcomeHasAText() {
        for isOutgoing in [true, false] {
            for outcome in CallOutcome.allCases {
                let call = Calls.Logged(id: "1", isOutgoing: isOutgoing, outcome: outcome, person: CallScript.ada)
                #expect(!call.outcomeText.isEmpty && (call.outcomeText == "Could not connect") == (outcome == .failed))
            }
        }
    }
}
