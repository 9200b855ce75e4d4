import Confab
import Foundation
import Observation

/// What the screens for contacts and past calls ask the server to do.
public enum PeopleRequest: Equatable, Sendable {
    case contacts
    case log(before: String?)
    case find(PersonID)
    case call(Person, video: Bool)
    case removeContact(PersonID)
    case block(PersonID), unblock(PersonID)
    case forget(CallID?)
    case seen(CallID)
    /// Requests to keep in touch with the other person in a call.
    case keep(call: CallID)
}

/// An event from the SDK about contacts, calls and other people.
public enum PeopleEvent: Sendable {
    case contacts([Person])
    case log([Calls.Logged], next: String?, isFirstPage: Bool)
    case found(Person?)
    case blocked(PersonID), unblocked(PersonID)
    case failed(ConfabError)
}

/// The screen for people, which shows contacts, past calls, or a page about one person.
@MainActor @Observable public final class PeopleModel: Screen {
    /// The page that the screen shows.
    public enum Page: Equatable, Sendable { case contacts, log, person }
    /// The state of the search for a person.
    public enum Search: Equatable, Sendable { case none, searching, nobody, bad }

    /// The maximum number of contacts that are shown. The server stores no more.
    static let maxContacts = 500
    /// The maximum number of past calls that are shown.
    static let maxLogged = 500
    public var page = Page.contacts { didSet { if page == .log { seeMissed() } } }
    public private(set) var contacts: [Person]?
    public private(set) var log: [Calls.Logged]?
    /// The calls that this screen has marked as seen since the log was loaded.
    private var seen: Set<CallID> = []
    public private(set) var hasMoreLog = false
    public private(set) var person: Person?
    public private(set) var busyPeople: Set<PersonID> = []
    public private(set) var blocked: Set<PersonID> = []
    public private(set) var search = Search.none
    public private(set) var trouble: ConfabError?
    /// The confirmation shown before an action that cannot be undone; nil if none is shown.
    public internal(set) var question: PeopleQuestion?
    public var findText = "" { didSet { search = .none } }
    private var nextLog: String?
    private let clock: any AppClock
    let request: @MainActor (PeopleRequest) -> Void

    init(clock: any AppClock, request: @escaping @MainActor (PeopleRequest) -> Void) {
        (self.clock, self.request) = (clock, request)
    }

    /// The number of missed calls that the user has not seen yet, shown on the tab.
    public var missedCount: Int { log?.count { $0.isMissed && !$0.isSeen && !seen.contains($0.id) } ?? 0 }

    // MARK: User actions

    public func load() {
        request(.contacts)
        request(.log(before: nil))
    }

    public func open(_ id: PersonID) {
        let known = contacts?.first { $0.id == id }
        let logged = log?.first { $0.person.id == id }.map { Person(id: id, name: $0.person.name) }
        guard let found = known ?? logged else { return find(id) }
        (person, page, trouble) = (found, .person, nil)
    }

    /// Finds the person whose id or link is in ``findText``.
    public func find() {
        guard let id = PersonLink.id(in: findText) else { return search = .bad }
        find(id)
    }
    public var canFind: Bool { search != .searching }

    func find(_ id: PersonID) {
        (search, trouble) = (.searching, nil)
        request(.find(id))
    }

    public func call(video: Bool) {
        guard let person, canCall else { return }
        request(.call(person, video: video))
    }

    public func callBack(_ id: CallID) {
        guard let call = log?.first(where: { $0.id == id }) else { return }
        request(.call(call.person, video: call.isVideo))
    }

    public func toggleBlock() {
        guard let person else { return }
        request(blocked.contains(person.id) ? .unblock(person.id) : .block(person.id))
    }

    public func forget(_ id: CallID) {
        log?.removeAll { $0.id == id }
        request(.forget(id))
    }
    func forgetAll() {
        log = []
        request(.forget(nil))
    }
    public func showEarlier() { if let nextLog { request(.log(before: nextLog)) } }

    private func seeMissed() {
        for call in log ?? [] where !call.isSeen && seen.insert(call.id).inserted { request(.seen(call.id)) }
    }

    // MARK: Events

    /// Clears all data that belongs to the account. Also called when the user switches servers, because the new account
    /// has other data.
    func reset() {
        (contacts, log, person, trouble, nextLog, hasMoreLog) = (nil, nil, nil, nil, nil, false)
        (blocked, busyPeople, search, findText, page, question) = ([], [], .none, "", .contacts, nil)
    }

    /// Returns the name of a person in the lists; nil if the person is in none.
    func name(of id: PersonID) -> String? {
        contacts?.first { $0.id == id }?.name ?? log?.first { $0.person.id == id }?.person.name
    }

    func knows(contact id: PersonID) -> Bool { contacts?.contains { $0.id == id } ?? false }

    func knows(blocked ids: [PersonID]) { blocked = Set(ids) }

    func handle(_ event: PeopleEvent) {
        if case .failed = event {} else { trouble = nil }
        switch event {
        case .contacts(let all): contacts = Array(all.prefix(Self.maxContacts))
        case .log(let calls, let next, let isFirstPage):
            if isFirstPage { seen = [] }
            log = Array(((isFirstPage ? nil : log) ?? []) + calls).prefix(Self.maxLogged).map(\.self)
            (nextLog, hasMoreLog) = (next, next != nil && (log?.count ?? 0) < Self.maxLogged)
            if page == .log { seeMissed() }
        case .found(let contact):
            search = contact == nil ? .nobody : .none
            if let contact { (person, page, trouble) = (contact, .person, nil) }
        case .blocked(let id):
            blocked.insert(id)
            forget(contact: id)
        case .unblocked(let id): blocked.remove(id)
        case .failed(let trouble):
            self.trouble = trouble
            if search == .searching { search = .none }
        }
    }

    func handle(_ event: Contacts.Event) {
        switch event {
        case .asked: break
        case .added(let contact, _), .changed(let contact):
            if let index = contacts?.firstIndex(where: { $0.id == contact.id }) {
                contacts?[index] = contact
            } else if (contacts?.count ?? 0) < Self.maxContacts {
                contacts = (contacts ?? []) + [contact]
            }
            if person?.id == contact.id { person = contact }
        case .removed(let id): forget(contact: id)
        }
    }

    private func forget(contact id: PersonID) {
        contacts?.removeAll { $0.id == id }
        if question == .removeContact(id) { question = nil }
    }

    /// Records which people on the current page of the nearby list are in a call. All others count as not in a call.
    func nearby(_ people: [Nearby.Neighbor]) { busyPeople = Set(people.filter(\.isBusy).map(\.id)) }

    // MARK: Text

    public var troubleText: String { trouble?.message ?? "" }
    /// The text shown instead of a missing or empty list of contacts; otherwise empty.
    public var contactsText: String {
        guard let contacts else { return trouble == nil ? "Loading…" : "" }
        guard contacts.isEmpty else { return "" }
        return
            "No contacts yet. After a chat or a call, press “Keep in touch”. When both of you do, you become contacts."
    }
    /// The text shown instead of a missing or empty list of calls; otherwise empty.
    public var logText: String {
        guard let log else { return trouble == nil ? "Loading…" : "" }
        return log.isEmpty ? "No calls yet." : ""
    }
    /// Whether the list of the current page is missing because of an error.
    public var offersRetry: Bool {
        guard trouble != nil else { return false }
        return page == .contacts && contacts == nil || page == .log && log == nil
    }
    public func retry() {
        trouble = nil
        load()
    }
    public var offersDeleteAll: Bool { log?.isEmpty == false }
    public var blockText: String { isBlocked ? "Unblock" : "Block" }
    public var personName: String { person?.name ?? "" }

    public var isContact: Bool { contacts?.contains { $0.id == person?.id } ?? false }
    public var isBlocked: Bool { person.map { blocked.contains($0.id) } ?? false }
    /// Whether a person was opened, so that the page about that person can be shown.
    public var hasPerson: Bool { person != nil }
    public var canCall: Bool { person.map { !busyPeople.contains($0.id) } ?? false && !isBlocked }

    public var personStatus: String {
        guard let person else { return "" }
        if isBlocked { return "Blocked. You cannot see or call each other." }
        if busyPeople.contains(person.id) { return "In a call" }
        return person.isOnline ? "Online" : "Offline"
    }

    public var searchText: String {
        switch search {
        case .none: ""
        case .searching: "Searching…"
        case .nobody: "No one has this ID. Ask the person for their link again."
        case .bad: "This is not a link or an ID. An ID has 32 characters, and a link ends with an ID."
        }
    }

    public var contactRows: [ListRow<PersonID>] {
        (contacts ?? []).map { ListRow(id: $0.id, title: $0.name, detail: $0.isOnline ? "Online" : "Offline") }
    }

    public var logRows: [ListRow<CallID>] {
        (log ?? []).map {
            let parts = [$0.outcomeText, $0.isVideo ? "video" : "voice", $0.duration?.clockText].compactMap(\.self)
            return ListRow(
                id: $0.id, title: $0.person.name, detail: parts.joined(separator: " · "),
                isMissed: $0.isMissed)
        }
    }

    public var lines: [ScreenLine] {
        switch page {
        case .contacts: contactLines
        case .log: logLines
        case .person: personLines
        }
    }

    private var contactLines: [ScreenLine] {
        var lines: [ScreenLine] = [
            .title("Contacts"), .field("Find by ID or link", value: findText, hint: "ID or link"),
        ]
        lines.append(.button("Find", isEnabled: canFind))
        if !searchText.isEmpty { lines.append(.text(searchText)) }
        lines += troubleLines
        if !contactsText.isEmpty { lines.append(.text(contactsText)) }
        lines += contactRows.map { .row($0.title, detail: $0.detail) }
        if missedCount > 0 { lines.append(.text(counted(missedCount, "missed call", "missed calls"))) }
        return lines
    }

    private var logLines: [ScreenLine] {
        var lines: [ScreenLine] = [.title("Calls")] + troubleLines
        if !logText.isEmpty { lines.append(.text(logText)) }
        lines += logRows.map { .row($0.title, detail: $0.detail) }
        if hasMoreLog { lines.append(.button("Earlier calls")) }
        if offersDeleteAll { lines.append(.button("Delete all calls")) }
        return lines + questionLines
    }

    private var troubleLines: [ScreenLine] {
        (troubleText.isEmpty ? [] : [.text(troubleText)]) + (offersRetry ? [.button("Retry")] : [])
    }

    private var personLines: [ScreenLine] {
        guard let person else { return contactLines }
        var lines: [ScreenLine] = [.title(person.name), .text(personStatus)]
        lines += troubleLines
        lines += [.button("Call", isEnabled: canCall), .button("Voice call", isEnabled: canCall)]
        if isContact { lines.append(.button("Remove from contacts")) }
        return lines + [.button(blockText)] + questionLines
    }
}

extension Calls.Logged {
    var isMissed: Bool { !isOutgoing && (outcome == .missed || outcome == .busy) }

    /// The outcome of the call as text. Keep it identical to the text in the web page's call history.
    public var outcomeText: String {
        switch (isOutgoing, outcome) {
        case (true, .hungUp), (true, .ended), (true, .answeredElsewhere): "You called"
        case (true, .declined), (true, .declinedElsewhere): "Declined"
        case (true, .cancelled): "You canceled"
        case (true, .missed), (true, .unanswered): "No answer"
        case (true, .busy): "Busy"
        case (true, .unreachable): "Unreachable"
        case (false, .hungUp), (false, .ended): "Called you"
        case (false, .declined): "You declined"
        case (false, .cancelled): "Caller hung up"
        case (false, .missed), (false, .unanswered): "Missed"
        case (false, .busy): "You were busy"
        case (false, .unreachable): "Could not reach you"
        case (false, .answeredElsewhere): "Answered on another device"
        case (false, .declinedElsewhere): "Declined on another device"
        case (_, .connectionLost): "Connection lost"
        case (_, .merged): "You called each other"
        // A newer server may send outcomes that are unknown to this app.
        default: "Could not connect"
        }
    }
}

/// Links to people: `…/nearby#person=<id>` and `confab://person/<id>`.
public enum PersonLink {
    /// Returns the id in a link, or in a text that is only an id; nil for any other text.
    public static func id(in text: String) -> PersonID? {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.utf8.count <= 2048 else { return nil }
        guard let id = PersonID(text: String(text.suffix(32))) else { return nil }
        if text.utf8.count == 32 { return id }
        let before = text.dropLast(32)
        return before.hasSuffix("#person=") || before == "confab://person/" ? id : nil
    }
}
