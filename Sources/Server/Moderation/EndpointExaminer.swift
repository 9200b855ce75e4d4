import Signaling
import Synchronization
import Wire

/// An HTTP endpoint of the operator that judges samples. It gets each as the body of a POST request.
final class EndpointExaminer: SampleExaminer {
    let maxQuestions = 4
    private let url: WebhookURL
    private let token: SecretText?
    private let transport: any PushTransport
    private let report: @Sendable (SampleExaminerReport) -> Void
    private let requests = Mutex([UInt64: Task<Void, Never>]())

    init(
        _ url: WebhookURL, token: SecretText?, transport: any PushTransport,
        report: @escaping @Sendable (SampleExaminerReport) -> Void
    ) {
        (self.url, self.token, self.transport, self.report) = (url, token, transport, report)
    }

    func start() { report(.event(.available(true))) }

    func ask(_ question: SampleChecks.Question) {
        requests.withLock { requests in
            // The task removes itself, which it can do only after this.
            requests[question.number] = Task { [self] in
                let answer = await self.answer(to: question)
                let isWanted = self.requests.withLock { $0.removeValue(forKey: question.number) != nil }
                if isWanted { report(.event(.answered(question.number, answer))) }
            }
        }
    }

    func abandon(_ number: UInt64) {
        let task = requests.withLock { $0.removeValue(forKey: number) }
        guard let task else { return }
        task.cancel()
        report(.problem("\(url.service) did not answer in time."))
    }

    func stop() async {
        let tasks = requests.withLock { requests in
            defer { requests = [:] }
            return Array(requests.values)
        }
        for task in tasks { task.cancel() }
        await transport.close()
        for task in tasks { await task.value }
    }

    private func answer(to question: SampleChecks.Question) async -> SampleChecks.Answer {
        do {
            let response = try await transport.exchange(request(question))
            guard response.status == 200 else {
                report(.problem("\(url.service) answered with status \(response.status) instead of 200."))
                return .failed
            }
            return .judged(try SampleVerdictText.parse(response.body, to: nil))
        } catch let error as InvalidVerdict {
            report(.problem("The answer of \(url.service) is invalid: \(error.reason)."))
            return .invalid
        } catch let failure as PushFailure {
            report(.problem("\(url.service) could not be asked: \(failure)"))
            return .failed
        } catch {
            return .failed
        }
    }

    private func request(_ question: SampleChecks.Question) -> PushRequest {
        var headers = [
            (name: "content-type", value: "image/jpeg"), ("accept", "application/json"),
            ("confab-sample", String(question.number)), ("confab-chat", question.source.match.description),
            ("confab-person", question.source.person.description),
        ]
        if let token { headers.append(("authorization", "Bearer \(token.revealed)")) }
        return PushRequest(
            host: url.host, port: url.port, path: url.path, headers: headers, body: question.jpeg,
            isSecure: url.isSecure)
    }
}
