import DequeModule
import NIOCore
import Signaling

/// Sends queries to storage and the push registry, and returns the answers to the hub.
extension HubRunner {
    /// Counts the queries among the effects, including those that will wait for a commit. Answers the queries that
    /// exceed a limit with an error, and returns all other effects.
    func beginQueries(_ effects: [Effect]) -> [Effect] {
        guard effects.contains(where: { if case .query = $0 { true } else { false } }) else { return effects }
        return effects.filter { effect in
            guard case .query(let question) = effect else { return true }
            let slot = hub.socket(of: question.client).flatMap { sockets[$0]?.slot }
            guard let error = queries.begin(question, in: slot, clientBudgets) else { return true }
            inputs.append(.answered(question, .refused(error)))
            return false
        }
    }

    /// Runs a query. The result includes the person's earlier changes, because the query waited until they were
    /// committed.
    func query(_ question: Question) {
        let runner = NIOLoopBound(self, eventLoop: eventLoop)
        let (handler, now, eventLoop) = (queryHandler, clock.wallNow, eventLoop)
        Task {
            let finding = await handler.finding(for: question, now: now)
            eventLoop.execute {
                // Submit the answer before ending the query: data stored because of it is charged to the query's
                // slot, even if the client is gone.
                runner.value.submit(.answered(question, finding))
                runner.value.queries.end(question, runner.value.clientBudgets)
            }
        }
    }
}
