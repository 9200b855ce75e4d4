import Wire

// What is deleted when a person deletes their account. `SQLTransaction.delete` (`SQLTransaction+People`) deletes what is stored.

extension Person {
    /// Deletes this person and all their data, on all devices. Data of other people, such as their call logs, is kept.
    mutating func delete(_ request: Request, _ context: inout Context) {
        context.tell(.deviceCodes(.withdraw(id)))
        context.tell(.lookup(persona.id, .void))
        calls.endAll(.deleted, snapshot, &context)
        roulette.stop(.partnerLeft, notifies: false, snapshot, &context)
        let formerContacts = contacts.removeAll()
        for contact in formerContacts { context.tell(.person(contact, .contact(.removed(by: id)))) }
        context.persist(.deleted(id, contacts: formerContacts))
        // A device may have created rooms before it was linked.
        for identity in [id] + devices.linkedIdentities { context.tell(.roomRegistry(.personDeleted(identity))) }
        context.ok(request)
        disconnectAll(&context)
        persona.forget()
        locationState.forget()
        // Late events must not store anything for this person.
        isDeleted = true
    }

    /// Notifies and disconnects all devices. They reconnect with new identities.
    private func disconnectAll(_ context: inout Context) {
        let clients = devices.clients
        for client in clients { context.send(.presence(.deleted), to: client) }
        devices.disconnect(
            clients, "This account was deleted. Send hello without an identity to get a new one.", &context)
        for client in devices.watching { context.tell(.directory(.unwatch(client))) }
    }
}

extension Call.Side {
    /// Removes the name of a deleted person, which a call that continues would otherwise show and store.
    mutating func forgetPerson() { party.name = "" }
}

extension Room {
    /// Handles the deletion of a person. If this person created the room, the room continues without a creator, and ends
    /// when nobody uses it anymore.
    mutating func personDeleted(_ person: IdentityID, _ context: inout Context) {
        guard person == creator else { return }
        setCreator(nil, &context)
        updateEnd(context)
        admitWaiting(&context)
    }
}
