import Cluster
import Wire

/// A chat or call in which this person met another person.
struct Encounter: Equatable, Sendable {
    var meeting: MeetingReference
    /// The other person; nil if there was no such chat or call, or if it was too long ago.
    var other: IdentityID?
    /// The other person's node at that time; nil if it was this one.
    var node: NodeTag?
}

/// A person's contacts. Two people who met become contacts when both agree, and each can remove the other. Contacts
/// see each other's online status.
struct ContactBook: Equatable, Sendable {
    private var contacts: [Contact]
    /// Contacts who are online and visible.
    private var online: Set<IdentityID> = []
    /// Those of them who are on another node of the cluster, with the node.
    private var nodes: [IdentityID: NodeTag] = [:]
    /// Contacts who were nowhere when this person asked, and of whom no node has reported since that they are online. The next such
    /// report may be an old one that was delayed, which nobody corrects.
    private var doubtful: Set<IdentityID> = []
    private var meetings = Meetings()

    init(_ record: PersonRecord) { contacts = record.contacts }

    /// Whether this person recently met someone with whom they may still become contacts.
    var hasStateToKeep: Bool { !meetings.isEmpty }

    func contains(_ other: IdentityID) -> Bool { contacts.contains { $0.identity == other } }

    /// Whether what is known about a contact may be wrong: the life of this node is over, or letters between it and this node were
    /// lost.
    func areInDoubt(on tag: NodeTag, isOver: Bool) -> Bool {
        nodes.values.contains(tag) || (!isOver && online.count < contacts.count)
    }

    /// The other node of the cluster on which this contact is online and visible; nil if there is none.
    func node(of person: PersonID, _ project: Project) -> NodeTag? {
        nodes.first { project.personID(of: $0.key) == person }?.value
    }

    /// The other node on which this contact is online and visible; nil if there is none.
    func node(of contact: IdentityID) -> NodeTag? { nodes[contact] }

    /// Contacts who are online and visible. For tests.
    var onlineContacts: Set<IdentityID> { online }
    /// All contacts. For tests.
    var identities: [IdentityID] { contacts.map(\.identity) }

    /// Returns `names` with the names of all contacts. A contact's name replaces another name of the same person.
    func addingNames(to names: [IdentityID: String]) -> [IdentityID: String] {
        var names = names
        for contact in contacts { names[contact.identity] = contact.name }
        return names
    }

    // MARK: Meetings

    mutating func recordCall(in call: CallState.Part, _ now: Timestamp) {
        meetings.recordCall(in: call.id, with: call.offer.other.identity, now: now)
    }

    func other(in call: CallID, _ now: Timestamp) -> IdentityID? { meetings.other(in: call, now: now) }

    mutating func forgetMeetings(with other: IdentityID) { meetings.forget(other) }

    /// Sends pending contact requests to a device that just went online.
    func sendRequests(to client: ConnectionID, _ context: inout Context) {
        for request in meetings.requests where request.other != nil && !request.isMine {
            context.send(.contact(.asked(request.meeting)), to: client)
        }
    }

    // MARK: Adding

    /// Handles this person's request to keep in touch.
    ///
    /// - Returns: the other person, if they had already requested to keep in touch and both now agree; otherwise nil.
    mutating func keep(
        _ encounter: Encounter, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context
    ) -> Counterpart? {
        do throws(WireError) {
            let other = try permitted(encounter, snapshot, context)
            let asker = meetings.recordRequest(encounter.meeting, by: nil, now: context.now).other
            // Notify the other person before answering: their state machine may store the contact, and the answer
            // must then wait until the contact is stored.
            if asker == nil {
                context.tell(
                    other, .contact(.asked(encounter.meeting, by: snapshot.acquaintance)), at: encounter.node)
            }
            context.ok(request)
            return asker
        } catch {
            context.fail(error, request)
        }
        return nil
    }

    private func permitted(
        _ encounter: Encounter, _ snapshot: PersonSnapshot, _ context: Context
    ) throws(WireError) -> IdentityID {
        guard let other = encounter.other else {
            throw WireError(
                .notFound, "This chat or call is unknown, or it ended too long ago. Send a more recent one.")
        }
        guard !snapshot.blocks.contains(other) else {
            throw WireError(.notPermitted, "You have blocked this person. Unblock them first.")
        }
        guard hasRoom(for: other, context) else {
            throw WireError(
                .notPermitted, "You already have \(contacts.count) contacts, the maximum. Remove one first.")
        }
        return other
    }

    private func hasRoom(for other: IdentityID, _ context: Context) -> Bool {
        contacts.count < context.rules.maxContacts || contains(other)
    }

    /// Handles the other person's request to keep in touch.
    ///
    /// - Returns: true if both now agree, because this person had already requested to keep in touch or already has
    ///   the other person as a contact.
    mutating func asked(
        _ encounter: Encounter, by other: Counterpart, _ snapshot: PersonSnapshot, _ context: inout Context
    ) -> Bool {
        let meeting = encounter.meeting
        guard encounter.other == other.identity, !snapshot.blocks.contains(other.identity) else { return false }
        let isKnown = meetings.requests.contains { $0.meeting == meeting && $0.other != nil }
        let contactRequest = meetings.recordRequest(meeting, by: other, now: context.now)
        if contactRequest.isMine || contains(other.identity) { return true }
        if !isKnown { tell(snapshot.devices, .asked(meeting), &context) }
        return false
    }

    /// Handles a new contact that the other person's state machine has stored.
    ///
    /// - Returns: true if this person has not blocked the other person and has room for the contact. Otherwise removes
    ///   the contact from both contact books and returns false.
    func accepts(_ other: Counterpart, _ snapshot: PersonSnapshot, _ context: inout Context) -> Bool {
        if !snapshot.blocks.contains(other.identity), hasRoom(for: other.identity, context) { return true }
        giveUp(other.identity, snapshot.id, &context)
        return false
    }

    mutating func add(
        _ other: Counterpart, _ encounter: Encounter, _ devices: DeviceList, _ context: inout Context
    ) {
        meetings.fulfilled(encounter.meeting)
        contacts.removeAll { $0.identity == other.identity }
        contacts.append(Contact(identity: other.identity, name: other.name))
        note(other, at: encounter.node)
        tell(devices, .added(.init(person: other.info, meeting: encounter.meeting)), &context)
    }

    private mutating func note(_ other: Counterpart, at tag: NodeTag? = nil) {
        if other.isOnline { online.insert(other.identity) } else { online.remove(other.identity) }
        nodes[other.identity] = other.isOnline ? tag : nil
    }

    // MARK: Listing

    func list(_ request: Request, _ context: inout Context) {
        let project = context.project
        let people = contacts.map { contact in
            PersonInfo(
                id: project.personID(of: contact.identity), name: contact.name,
                online: online.contains(contact.identity)
            )
        }
        context.send(.contact(.list(PeopleList(re: request.re, people: people))), to: request.client)
    }

    // MARK: Removing

    mutating func remove(
        _ verb: PersonReference, _ request: Request, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        let project = context.project
        guard let contact = contacts.first(where: { project.personID(of: $0.identity) == verb.person }) else {
            let error = WireError(.notFound, "This person is not in your contacts. Request contact.list again.")
            return context.fail(error, request)
        }
        remove(contact.identity, of: snapshot.id, &context)
        context.ok(request)
        tell(snapshot.devices, .removed(verb), except: request.client, &context)
    }

    /// Removes a contact from both people's contact books. Does nothing if `other` is not a contact.
    mutating func remove(_ other: IdentityID, of id: IdentityID, _ context: inout Context) {
        if forget(other) { giveUp(other, id, &context) }
    }

    /// Removes a contact who has removed this person, and notifies this person's devices.
    mutating func removed(by other: IdentityID, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard forget(other) else { return }
        tell(snapshot.devices, .removed(.init(person: context.project.personID(of: other))), &context)
    }

    private func giveUp(_ other: IdentityID, _ id: IdentityID, _ context: inout Context) {
        context.persist(.lostTouch(id, other))
        context.tell(.person(other, .contact(.removed(by: id))))
    }

    private mutating func forget(_ other: IdentityID) -> Bool {
        guard let index = contacts.firstIndex(where: { $0.identity == other }) else { return false }
        contacts.remove(at: index)
        online.remove(other)
        doubtful.remove(other)
        nodes[other] = nil
        return true
    }

    /// Removes all contacts.
    ///
    /// - Returns: the people who were contacts.
    mutating func removeAll() -> [IdentityID] {
        defer { (contacts, online, nodes, doubtful) = ([], [], [:], []) }
        return contacts.map(\.identity)
    }

    // MARK: Presence

    /// Notifies all contacts that this person's name or online status has changed.
    func reportPresence(_ snapshot: PersonSnapshot, _ context: inout Context) {
        reportPresence(snapshot, to: contacts, &context)
    }

    private func reportPresence(_ snapshot: PersonSnapshot, to contacts: [Contact], _ context: inout Context) {
        for contact in contacts {
            context.tell(.person(contact.identity, .contact(.presence(of: snapshot.counterpart))))
        }
    }

    /// Requests the online status of all contacts. Called when this person's first device connects.
    func query(for id: IdentityID, _ context: inout Context) { query(contacts, for: id, &context) }

    private func query(_ contacts: [Contact], for id: IdentityID, _ context: inout Context) {
        for contact in contacts { context.tell(.person(contact.identity, .contact(.queried(by: id)))) }
    }

    /// Answers a contact's request for this person's online status.
    func queried(by other: IdentityID, _ snapshot: PersonSnapshot, _ context: inout Context) {
        // In a cluster, the letter that this person has removed the contact may have been lost.
        guard contains(other) else { return context.tell(.person(other, .contact(.removed(by: snapshot.id)))) }
        // Someone who is not seen online answers too: in a cluster, an older letter that says otherwise may arrive before the answer.
        guard snapshot.isSeenOnline || context.tag != nil else { return }
        context.tell(.person(other, .contact(.presence(of: snapshot.counterpart))))
    }

    mutating func presenceChanged(of other: Counterpart, _ devices: DeviceList, _ context: inout Context) {
        note(other, at: nil, devices, &context)
    }

    private mutating func note(
        _ other: Counterpart, at tag: NodeTag?, _ devices: DeviceList, _ context: inout Context
    ) {
        guard let index = contacts.firstIndex(where: { $0.identity == other.identity }) else { return }
        let wasOnline = online.contains(other.identity)
        note(other, at: tag)
        guard wasOnline != other.isOnline || contacts[index].name != other.name else { return }
        contacts[index].name = other.name
        let news = ContactNotice.Changed(person: other.info)
        for client in devices.present { context.send(.contact(.changed(news)), to: client) }
    }

    // MARK: Other nodes of the cluster

    /// Handles the presence of a contact that another node reports. After a contact has moved, both nodes may report it, and the
    /// letters of the former node may arrive last.
    mutating func presenceChanged(
        of other: Counterpart, at tag: NodeTag, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        let wasOnline = online.contains(other.identity)
        if wasOnline {
            // The contact is on this node now.
            guard let node = nodes[other.identity] else { return }
            // The contact has been seen on another node since.
            guard other.isOnline || node == tag else { return }
        }
        let isDoubtful = other.isOnline && doubtful.remove(other.identity) != nil
        note(other, at: tag, snapshot.devices, &context)
        // A contact who is offline there may be online on a third node, whose letters were the earlier ones.
        if wasOnline ? !other.isOnline : isDoubtful {
            context.tell(.person(other.identity, .contact(.queried(by: snapshot.id))))
        }
    }

    /// Handles that a contact, whom this person has asked for the online status, was on no node.
    ///
    /// A contact who is seen online on another node may have come there since, because the node's report can overtake the registry's
    /// answer. So this person asks again, and believes the second answer if no report has arrived in between.
    mutating func absent(_ other: IdentityID, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard let contact = contacts.first(where: { $0.identity == other }) else { return }
        let tag = nodes[other]
        // The contact is on this node now.
        guard tag != nil || !online.contains(other) else { return }
        let isFirst = doubtful.insert(other).inserted
        guard let tag else { return }
        if isFirst {
            context.tell(.person(other, .contact(.queried(by: snapshot.id))))
        } else {
            note(contact.offline(context.project), at: tag, snapshot.devices, &context)
        }
    }

    /// Notifies contacts on this node that another node has this person's place.
    func reportPlaceLost(of id: IdentityID, _ context: inout Context) {
        for contact in contacts { context.tell(.person(contact.identity, .contact(.placeLost(of: id)))) }
    }

    /// Begins again with a contact whose place another node has. What that node reported before was ignored, because the contact
    /// was still on this node. And what it asked was answered to the contact on this node.
    func placeLost(of other: IdentityID, _ snapshot: PersonSnapshot, _ context: inout Context) {
        guard contains(other) else { return }
        context.tell(.person(other, .contact(.queried(by: snapshot.id))))
        queried(by: other, snapshot, &context)
    }

    /// Begins again with the contacts on a node: its life is over, or letters were lost. Then contacts who seem to be offline may have
    /// gone online there.
    mutating func nodeLost(
        _ tag: NodeTag, isOver: Bool, _ snapshot: PersonSnapshot, _ context: inout Context
    ) {
        let project = context.project
        let there = contacts.filter { nodes[$0.identity] == tag }
        let absent = isOver ? [] : contacts.filter { !online.contains($0.identity) }
        for contact in there {
            // Asks where the contact is now.
            presenceChanged(of: contact.offline(project), at: tag, snapshot, &context)
        }
        guard !isOver else { return }
        query(absent, for: snapshot.id, &context)
        // The node may also lack the presence of this person.
        if snapshot.isSeenOnline { reportPresence(snapshot, to: there + absent, &context) }
    }

    /// Notifies all devices, even those that did not send `presence.appear`, because people in a roulette chat need not send
    /// it. Skips legacy clients, whose protocol has no such message.
    private func tell(
        _ devices: DeviceList, _ news: ContactNotice, except excluded: ConnectionID? = nil, _ context: inout Context
    ) {
        for client in devices.clients where client != excluded && devices[client]?.home == nil {
            context.send(.contact(news), to: client)
        }
    }
}

extension Contact {
    /// This contact as someone who is offline.
    fileprivate func offline(_ project: Project) -> Counterpart {
        Counterpart(identity: identity, person: project.personID(of: identity), name: name, isOnline: false)
    }
}
