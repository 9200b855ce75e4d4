import Logging
import Signaling
import Wire

/// Answers the hub's queries from storage and the push notifier.
struct QueryHandler: Sendable {
    let storage: any Storage
    let pushNotifier: (any PushNotifier)?
    let logger: Logger

    func finding(for question: Question, now: Timestamp) async -> Finding {
        do {
            return try await answer(question, now: now)
        } catch let error as WireError {
            return .refused(error)
        } catch {
            logger.error("Query failed", metadata: ["error": "\(error)"])
            return .refused(.internalError)
        }
    }

    /// Returns the persistent rooms that can be read; nil if storage cannot be read.
    func rooms() async -> [StoredRoom]? {
        do {
            let stored = try await storage.rooms()
            stored.logUnreadable(logger)
            return stored.rooms
        } catch {
            logger.error(
                "Could not reload rooms after losing changes to them. They stay as they are until the next change.",
                metadata: ["error": "\(error)"])
            return nil
        }
    }

    private func answer(_ question: Question, now: Timestamp) async throws -> Finding {
        switch question.query {
        case .person(let id, _):
            return .person(try await storage.person(id, at: now))
        case .callLog(let page):
            let before = page.before.map { CallLogCursor($0) }
            guard before != .some(nil) else {
                throw WireError(
                    .malformed,
                    "Invalid \"before\". Send the \"next\" of an earlier page, or omit it for the first page.")
            }
            let found = try await storage.callLog(
                of: question.identity, before: before ?? nil, limit: page.limit ?? Limits.callLogRows)
            return .callLog(found.calls, next: found.next?.text)
        case .callHome(let call):
            return .callHome(try await storage.home(of: call, of: question.identity))
        case .register(let registration):
            guard let pushNotifier else {
                throw WireError(.pushNotAllowed, "Push notifications are not available on this server.")
            }
            try await storage.addPushEndpoint(
                pushNotifier.check(registration), of: question.identity, device: question.device, at: now)
            return .push(isReachable: true)
        case .unregister(let endpoint):
            // PostgreSQL cannot compare text with a NUL.
            guard !endpoint.endpoint.utf8.contains(0) else {
                throw WireError(.pushInvalid, "Invalid endpoint. Send the endpoint that was registered.")
            }
            // Convert a device token to lower case, as it is stored. Keep a URL, recognized by its colon, unchanged.
            let kept = endpoint.endpoint.contains(":") ? endpoint.endpoint : endpoint.endpoint.lowercased()
            return .push(isReachable: try await storage.removePushEndpoint(kept, of: question.identity))
        case .wakeable:
            return .push(isReachable: try await !storage.pushEndpoints(of: question.identity).isEmpty)
        }
    }
}
