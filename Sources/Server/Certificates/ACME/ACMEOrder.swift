import Crypto
import Signaling
import Wire

/// Gets one certificate from an ACME server (RFC 8555), with challenges of one type.
///
/// A pure state machine: it gets responses and the time, and returns requests. It sends one request at a time, in this order:
/// directory, account, order, each authorization with its challenge, finalization, certificate. The account's URL is not
/// stored, because an authority returns the existing account of a key (§7.3). Every order ends: after ``timeLimit``, after
/// ``maxRequests`` requests, or with a result. The keys are arguments; only the signatures get randomness from the
/// cryptographic library.
struct ACMEOrder {
    /// What to order.
    struct Settings: Sendable {
        /// The URL of the authority's directory.
        var directory: String
        /// The domains of the certificate, in lower case. Not empty.
        var domains: [String]
        /// The address for the authority's messages; nil for none.
        var email: String?
        /// The type of the challenges. An authority that does not offer it is refused.
        var challenge = ConfabConfiguration.ACME.Challenge.http
        /// The key of the account.
        var accountKey: P256.Signing.PrivateKey
        /// The key of the certificate. Each certificate gets a new one.
        var certificateKey: P256.Signing.PrivateKey
    }

    /// What happens to an order.
    enum Input: Sendable {
        /// Begins the order.
        case start
        /// The response to the request that was sent.
        case received(ACMEResponse)
        /// There is no response, for this reason.
        case lost(String)
        /// The wait that was requested is over.
        case waited
    }

    /// What the shell must do.
    enum Output: Equatable, Sendable {
        /// Send this request and pass on its response.
        case send(ACMERequest)
        /// Answer this challenge until the order is done. Comes before the request that makes the authority look.
        case publish(ACMEChallenge)
        /// Wait this long, then pass on `waited`.
        case wait(Duration)
        /// The order is done.
        case done(Result<IssuedCertificate, ACMEFailure>)
    }

    /// How long an order may take.
    static let timeLimit: Duration = .seconds(900)
    /// Maximum number of requests for an order, without those for each domain.
    static let maxRequests = 100
    /// Maximum number of times that one request is repeated because its nonce was refused (§6.5).
    static let maxRefusedNonces = 10
    /// The wait before the first poll. It doubles until it is ``longestPoll``.
    static let firstPoll: Duration = .seconds(1)
    static let longestPoll: Duration = .seconds(16)

    /// A signed request, kept to sign it again with another nonce.
    private struct Post {
        var purpose: Purpose
        var url: String
        /// Nil for POST-as-GET.
        var payload: JSONObject?
        var accept: String?
    }

    /// What a signed request is for.
    private enum Purpose: Equatable { case account, order, authorization, challenge, finalization, status, certificate }

    /// What the order is waiting for.
    private enum Step {
        case idle
        case directory
        /// Waits for a nonce for this request.
        case nonce(Post)
        case answer(Post)
        /// Waits before this request.
        case pause(Post)
        case done
    }

    /// The order at the authority.
    private struct Placed {
        var url: String
        var finalize: String
        /// The authorizations that are not known to be valid.
        var open: [String]
        /// Whether the authority was asked to look at the challenge of the first open authorization.
        var isChallenged = false
        var isFinalized = false
    }

    private let settings: Settings
    private var step = Step.idle
    private var directory: ACMEDirectory?
    private var account: String?
    private var placed: Placed?
    private var nonce: String?
    private var refusedNonces = 0
    private var requests = 0
    private var polls = 0
    /// When the order must end, on the clock of `Moment.now`.
    private var end: Timestamp?
    /// The time of day when the order began.
    private var startedAt: Timestamp?
    private var outputs: [Output] = []

    /// Makes an order that begins with the input `start`.
    init(_ settings: Settings) { self.settings = settings }

    /// Handles an input. Ignores inputs that do not fit the current step, such as a response after the end.
    mutating func handle(_ input: Input, at moment: Moment) -> [Output] {
        outputs = []
        do throws(ACMEFailure) {
            if let end, moment.now >= end, !isDone { throw .timedOut(expectation) }
            try take(input, moment)
        } catch {
            finish(.failure(error))
        }
        return outputs
    }

    private var isDone: Bool { if case .done = step { true } else { false } }

    private mutating func take(_ input: Input, _ moment: Moment) throws(ACMEFailure) {
        switch (step, input) {
        case (.idle, .start):
            (end, startedAt) = (moment.now + Self.timeLimit, moment.wall)
            step = .directory
            try send(ACMERequest(method: .get, url: settings.directory))
        case (.directory, .received(let response)): try read(directory: response)
        case (.nonce(let post), .received(let response)):
            keepNonce(response)
            guard nonce != nil else {
                throw response.status >= 300 ? ACMEFailure(response) : .badResponse("it has no Replay-Nonce")
            }
            try self.post(post)
        case (.answer(let post), .received(let response)):
            keepNonce(response)
            try read(response, to: post)
        case (.pause(let post), .waited): try self.post(post)
        case (.directory, .lost(let reason)), (.nonce, .lost(let reason)), (.answer, .lost(let reason)):
            throw .unreachable(reason)
        default: break
        }
    }

    // MARK: Requests

    private mutating func send(_ request: ACMERequest) throws(ACMEFailure) {
        requests += 1
        guard requests <= Self.maxRequests + 10 * settings.domains.count else { throw .timedOut("too many requests") }
        outputs.append(.send(request))
    }

    /// Signs and sends a request. Gets a nonce first if there is none.
    private mutating func post(_ post: Post) throws(ACMEFailure) {
        guard let nonce else {
            step = .nonce(post)
            return try send(ACMERequest(method: .head, url: directory?.newNonce ?? ""))
        }
        self.nonce = nil
        let body: [UInt8]
        do {
            body = try JSONWebSignature.sign(
                post.payload, with: settings.accountKey, as: account.map { .account($0) } ?? .publicKey, nonce: nonce,
                url: post.url)
        } catch {
            throw .cannotSign(error)
        }
        step = .answer(post)
        try send(ACMERequest(method: .post, url: post.url, accept: post.accept, body: body))
    }

    /// Keeps the nonce of the response for the next request (§6.5.1).
    private mutating func keepNonce(_ response: ACMEResponse) {
        if let text = response.nonce { nonce = text }
    }

    /// Sends the request after a wait: what the authority asks for, but at least a second and at most a minute.
    private mutating func poll(_ post: Post, after response: ACMEResponse) {
        let usual = min(Self.firstPoll * (1 << min(polls, 10)), Self.longestPoll)
        polls += 1
        step = .pause(post)
        outputs.append(.wait(max(Self.firstPoll, min(response.retryAfter ?? usual, .seconds(60)))))
    }

    // MARK: Responses

    private mutating func read(directory response: ACMEResponse) throws(ACMEFailure) {
        guard response.status == 200 else { throw ACMEFailure(response) }
        guard let found = response.object.flatMap({ ACMEDirectory($0) }) else {
            throw .badResponse("it is not a directory")
        }
        guard !found.needsExternalAccount else { throw Self.needsExternalAccount }
        directory = found
        // The configuration requires the operator's consent, so the account agrees to the current terms.
        var payload = JSONObject([.init(name: "termsOfServiceAgreed", value: .bool(true))])
        if let email = settings.email {
            payload.members.append(.init(name: "contact", value: .array([.string("mailto:\(email)")])))
        }
        try post(Post(purpose: .account, url: found.newAccount, payload: payload))
    }

    private static let needsExternalAccount = ACMEFailure(
        code: .refused, reason: "The authority requires an account that was made elsewhere (external account binding).",
        advice: "Choose another authority in acme.directory.")

    private mutating func read(_ response: ACMEResponse, to post: Post) throws(ACMEFailure) {
        guard (200..<300).contains(response.status) else { return try readError(response, to: post) }
        refusedNonces = 0
        switch post.purpose {
        case .account:
            account = try response.location()
            let names = settings.domains.map { domain in
                JSONValue.object(
                    JSONObject([
                        .init(name: "type", value: .string("dns")), .init(name: "value", value: .string(domain)),
                    ]))
            }
            let payload = JSONObject([.init(name: "identifiers", value: .array(names))])
            try self.post(Post(purpose: .order, url: directory?.newOrder ?? "", payload: payload))
        case .order: try place(response)
        case .authorization: try readAuthorization(response, post)
        case .challenge:
            guard let url = placed?.open.first else { return }
            poll(Post(purpose: .authorization, url: url), after: response)
        case .finalization, .status: try readOrder(response)
        case .certificate:
            finish(.success(try IssuedCertificate(response.body, settings, now: startedAt)))
        }
    }

    private mutating func readError(_ response: ACMEResponse, to post: Post) throws(ACMEFailure) {
        guard ACMEProblem(response.object).type == "badNonce", refusedNonces < Self.maxRefusedNonces else {
            throw ACMEFailure(response)
        }
        refusedNonces += 1
        try self.post(post)
    }

    private mutating func place(_ response: ACMEResponse) throws(ACMEFailure) {
        let url = try response.location()
        guard let order = response.object, let finalize = order.url("finalize"),
            case .array(let elements)? = order["authorizations"], (1...settings.domains.count).contains(elements.count)
        else { throw .badResponse("it is not an order") }
        var open: [String] = []
        for element in elements {
            guard case .string(let url) = element, ACMEURL.isUsable(url) else {
                throw .badResponse("the URL of an authorization is not usable")
            }
            open.append(url)
        }
        placed = Placed(url: url, finalize: finalize, open: order.text("status") == "pending" ? open : [])
        try readOrder(response)
    }

    /// Continues as the order's status requires (§7.1.6).
    private mutating func readOrder(_ response: ACMEResponse) throws(ACMEFailure) {
        guard let placed, let order = response.object, let status = order.text("status") else {
            throw .badResponse("it is not an order")
        }
        switch status {
        case "pending" where !placed.open.isEmpty: try authorizeNext()
        case "ready" where !placed.isFinalized: try finalize()
        case "pending", "ready", "processing":
            poll(Post(purpose: .status, url: placed.url), after: response)
        case "valid":
            guard placed.isFinalized else { throw .badResponse("an order is valid before it was finalized") }
            guard let url = order.url("certificate") else { throw .badResponse("the order has no certificate") }
            try post(Post(purpose: .certificate, url: url, accept: "application/pem-certificate-chain"))
        case "invalid":
            throw ACMEFailure(order: ACMEProblem(object(order["error"])))
        default: throw .badResponse("the order has an unknown status")
        }
    }

    private func object(_ value: JSONValue?) -> JSONObject? {
        if case .object(let object)? = value { object } else { nil }
    }

    private mutating func authorizeNext() throws(ACMEFailure) {
        polls = 0
        guard let placed else { return }
        if let url = placed.open.first {
            try post(Post(purpose: .authorization, url: url))
        } else {
            // Ask for the order, because an authority may take a moment until it is ready.
            try post(Post(purpose: .status, url: placed.url))
        }
    }

    private mutating func readAuthorization(_ response: ACMEResponse, _ post: Post) throws(ACMEFailure) {
        guard let object = response.object, let status = object.text("status"), placed != nil else {
            throw .badResponse("it is not an authorization")
        }
        let domain = ACMEProblem.sentence(self.object(object["identifier"])?.text("value") ?? "unknown")
        let challenges = object.objects("challenges")
        let challenge = challenges.first { $0.text("type") == settings.challenge.type }
        switch status {
        case "valid":
            placed?.open.removeFirst()
            placed?.isChallenged = false
            try authorizeNext()
        case "pending" where placed?.isChallenged == true: poll(post, after: response)
        case "pending":
            guard let challenge else { throw unsupported(challenges, domain) }
            try respond(to: challenge, domain)
        default:
            throw ACMEFailure(
                domain: domain, settings.challenge, ACMEProblem(challenge.flatMap { self.object($0["error"]) }))
        }
    }

    /// The failure for a domain without a challenge of the configured type.
    private func unsupported(_ challenges: [JSONObject], _ domain: String) -> ACMEFailure {
        let wanted = settings.challenge
        let other = ConfabConfiguration.ACME.Challenge.allCases.first { candidate in
            candidate != wanted && challenges.contains { $0.text("type") == candidate.type }
        }
        return ACMEFailure(
            code: .challengeFailed, reason: "The authority offers no \(wanted.type) challenge for \(domain).",
            advice: other.map {
                "It offers \($0.type): set acme.challenge to \($0.rawValue) if it can reach port \($0.port) of this server."
            } ?? "Choose another authority in acme.directory: Confab supports only http-01 and tls-alpn-01.")
    }

    /// Publishes the answer to the challenge, and asks the authority to look at it.
    private mutating func respond(to challenge: JSONObject, _ domain: String) throws(ACMEFailure) {
        let domain = domain.lowercased()
        guard settings.domains.contains(domain) else {
            throw .badResponse("an authorization is for \(domain), which was not ordered")
        }
        guard let url = challenge.url("url"), let token = challenge.text("token"), ACMEChallenge.isToken(token) else {
            throw .badResponse("the challenge has no usable URL or token")
        }
        placed?.isChallenged = true
        let thumbprint = JSONWebSignature.thumbprint(settings.accountKey.publicKey)
        outputs.append(.publish(ACMEChallenge(domain: domain, token: token, answer: "\(token).\(thumbprint)")))
        try post(Post(purpose: .challenge, url: url, payload: JSONObject()))
    }

    private mutating func finalize() throws(ACMEFailure) {
        let request = try CertificateRequest.der(settings.domains, settings.certificateKey)
        placed?.isFinalized = true
        polls = 0
        let payload = JSONObject([.init(name: "csr", value: .string(Base64URL.encode(request)))])
        try post(Post(purpose: .finalization, url: placed?.finalize ?? "", payload: payload))
    }

    private mutating func finish(_ result: Result<IssuedCertificate, ACMEFailure>) {
        step = .done
        outputs = [.done(result)]
    }

    /// What the order is waiting for, for the failure when its time is over.
    private var expectation: String {
        switch step {
        case .idle, .directory, .nonce, .done: "it did not respond"
        case .answer(let post), .pause(let post):
            switch post.purpose {
            case .account, .order: "it did not accept the order"
            case .authorization, .challenge: "it did not finish looking at the challenge"
            case .finalization, .status, .certificate: "it did not issue the certificate"
            }
        }
    }
}
