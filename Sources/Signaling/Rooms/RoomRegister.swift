import Wire

/// Which rooms exist. Decides who may create one, and how often an address may try passwords.
///
/// Owns the names and the limits. Everything else about a room is the room's.
struct RoomRegister: Machine {
    /// Who created a room, for the limits.
    private struct Creator: Sendable {
        var identity: IdentityID
        var address: String
    }

    /// Maximum number of addresses with a separate budget for passwords. Further ones share one budget.
    private static let maxAddresses = 10_000

    private var rooms: [RoomName: Creator] = [:]
    private var perPerson: [IdentityID: Int] = [:]
    private var perAddress: [String: Int] = [:]
    private var guesses = BudgetTable<String>(maxKeys: Self.maxAddresses)

    init() {}

    mutating func handle(_ event: RoomRegisterEvent, _ turn: inout Turn) {
        switch event {
        case .join(let application):
            do throws(WireError) {
                try join(application, &turn)
            } catch {
                turn.fail(error, application.request)
            }
        case .wrongPassword(let address):
            _ = guesses.take(address, turn.rules.roomPasswordGuesses, now: turn.now)
        case .ended(let name): forget(name)
        }
    }

    private mutating func join(_ application: RoomApplication, _ turn: inout Turn) throws(WireError) {
        if let name = application.join.name, rooms[name] != nil {
            try permitPassword(application, turn)
            return turn.tell(.room(name, .join(application)))
        }
        guard turn.rules.roomCreation == .everyone else {
            throw WireError(.roomNotFound, "There is no room with this name. Ask who invited you for the link.")
        }
        let applicant = application.applicant
        try permitRoom(applicant, turn)
        let settings = try RoomSettings(application.join.options, &turn)
        let name = application.join.name ?? unusedName(&turn)
        rooms[name] = Creator(identity: applicant.identity, address: applicant.address)
        perPerson[applicant.identity, default: 0] += 1
        perAddress[applicant.address, default: 0] += 1
        // The identity of a client of PerchRTC's protocol proves nothing, so it has no privileges.
        turn.tell(.room(name, .open(settings, creator: applicant.isPerch ? nil : applicant.identity)))
        turn.tell(.room(name, .join(application)))
    }

    private func permitPassword(_ application: RoomApplication, _ turn: Turn) throws(WireError) {
        guard application.join.password != nil else { return }
        let wait = guesses.wait(application.applicant.address, turn.rules.roomPasswordGuesses, now: turn.now)
        guard let wait else { return }
        throw WireError(
            .rateLimited, "Too many wrong passwords from your network. Try again in \(wait.roundedText).",
            retryable: true, retryAfter: wait)
    }

    private func permitRoom(_ applicant: RoomApplicant, _ turn: Turn) throws(WireError) {
        guard perPerson[applicant.identity] ?? 0 < turn.rules.roomsPerPerson else {
            throw WireError(
                .rateLimited, "You created \(turn.rules.roomsPerPerson) rooms that still exist. Use one of them.",
                retryable: true, retryAfter: turn.rules.roomEmptyGrace)
        }
        guard perAddress[applicant.address] ?? 0 < turn.rules.roomsPerAddress, rooms.count < turn.rules.maxRooms else {
            throw WireError(
                .rateLimited, "There are too many rooms. Join one that exists, or try again later.", retryable: true,
                retryAfter: turn.rules.roomEmptyGrace)
        }
    }

    private func unusedName(_ turn: inout Turn) -> RoomName {
        var name = RoomName.random(using: &turn.random)
        while rooms[name] != nil { name = RoomName.random(using: &turn.random) }
        return name
    }

    private mutating func forget(_ name: RoomName) {
        guard let creator = rooms.removeValue(forKey: name) else { return }
        perPerson[creator.identity] = (perPerson[creator.identity] ?? 1) - 1
        perAddress[creator.address] = (perAddress[creator.address] ?? 1) - 1
        if perPerson[creator.identity] == 0 { perPerson[creator.identity] = nil }
        if perAddress[creator.address] == 0 { perAddress[creator.address] = nil }
    }
}
