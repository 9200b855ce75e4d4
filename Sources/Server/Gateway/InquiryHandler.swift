import Logging
import Signaling
import Wire

/// Answers what the rules ask: from storage, and from whatever wakes devices.
struct InquiryHandler: Sendable {
    let storage: any Storage
    let waking: (any Waking)?
    let logger: Logger

    func finding(for question: Question, now: Timestamp) async -> Finding {
        do {
            return try await answer(question, now: now)
        } catch let error as WireError {
            return .refused(error)
        } catch {
            logger.error("An inquiry could not be answered", metadata: ["error": "\(error)"])
            return .refused(
                WireError(.internalError, "The server has a problem; try again soon.", retryable: true))
        }
    }

    private func answer(_ question: Question, now: Timestamp) async throws -> Finding {
        switch question.inquiry {
        case .person(let id, _):
            return .person(try await storage.person(id, at: now))
        case .callLog(let page):
            let before = page.before.map { CallLogCursor($0) }
            guard before != .some(nil) else {
                throw WireError(.malformed, "\"before\" is the \"next\" of an earlier page; begin without it.")
            }
            let found = try await storage.callLog(
                of: question.identity, before: before ?? nil, limit: page.limit ?? Limits.callLogRows)
            return .callLog(found.calls, next: found.next?.text)
        case .register(let registration):
            guard let waking else { throw WireError(.pushNotAllowed, "This server wakes no devices.") }
            try await storage.addPushEndpoint(
                waking.check(registration), of: question.identity, device: question.device, at: now)
            return .push(isReachable: true)
        case .unregister(let endpoint):
            // A device token is kept in lower case; an address is kept as it is.
            let kept = endpoint.endpoint.contains(":") ? endpoint.endpoint : endpoint.endpoint.lowercased()
            return .push(isReachable: try await storage.removePushEndpoint(kept, of: question.identity))
        case .wakeable:
            return .push(isReachable: try await !storage.pushEndpoints(of: question.identity).isEmpty)
        }
    }
}
