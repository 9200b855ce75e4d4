public import Signaling
public import Wire

extension SQLStorage {
    public func resolve(_ device: IdentityID) async throws -> DeviceOwner {
        try await read { try $0.resolve(device) }
    }

    public func visitor(_ device: IdentityID, at now: Timestamp) async throws -> FoundRecord? {
        try await read { try $0.visitor(device, at: now) }
    }

    public func person(_ id: PersonID, at now: Timestamp) async throws -> FoundRecord? {
        try await read { try $0.person(id, at: now) }
    }

    public func everything(of id: IdentityID, at now: Timestamp) async throws -> PersonData {
        try await read { try $0.everything(of: id, at: now) }
    }

    public func callLog(of owner: IdentityID, before: CallLogCursor?, limit: Int) async throws -> CallPage {
        let limit = CallPage.limited(limit)
        let rows = try await read { try $0.calls(of: owner, before: before, limit: limit + 1) }
        return CallPage(rows: rows, limit: limit)
    }

    public func openCalls() async throws -> [StoredCall] {
        try await read { try $0.openCalls() }
    }

    public func rooms() async throws -> StoredRooms {
        try await read { try $0.rooms() }
    }

    public func room(named name: RoomName) async throws -> StoredRoom? {
        try await read { try $0.room(named: name) }
    }

    public func pushEndpoints(of id: IdentityID) async throws -> [PushRegistration] {
        try await read { try $0.endpoints(of: id).map(\.registration) }
    }

    public func addPushEndpoint(
        _ endpoint: PushRegistration, of id: IdentityID, device: IdentityID, at now: Timestamp
    ) async throws {
        try await writer.commit([
            .keep(PersonData.KeptEndpoint(device: device, registration: endpoint, at: now), of: id)
        ])
    }

    @discardableResult
    public func removePushEndpoint(_ endpoint: String, of id: IdentityID) async throws -> Bool {
        try await writer.commit([.remove(endpoint: endpoint, of: id)])
        return try await read { try $0.hasEndpoint(id) }
    }
}
