/// Why an attempt to get a certificate failed. The description is a message for the operator.
struct ACMEFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// Stable codes, for logs.
    enum Code: String, Sendable {
        /// The authority did not respond, or reported a fault of its own.
        case unreachable
        /// The authority accepts no more requests for some time.
        case rateLimited = "rate_limited"
        /// The authority has new terms of service, which the account has not agreed to.
        case termsChanged = "terms_changed"
        /// The authority could not verify a domain.
        case challengeFailed = "challenge_failed"
        /// The authority refused a request.
        case refused
        /// The authority's response violates the protocol.
        case badResponse = "bad_response"
        /// The authority did not finish in time.
        case timedOut = "timed_out"
        /// The certificate does not belong to the key, has expired, or lacks a domain.
        case badCertificate = "bad_certificate"
        /// This machine could not do its part, such as writing a file.
        case local
    }

    /// The kind of the failure.
    var code: Code
    /// What happened, as a sentence.
    var reason: String
    /// The authority's own sentence; empty if there is none.
    var detail = ""
    /// What to do, as a sentence.
    var advice: String
    /// How long the authority wants no further request; nil if it did not say.
    var retryAfter: Duration?

    /// The sentences for the operator: what happened, what the authority says, and what to do.
    var description: String { "\(event) \(advice)" }

    /// What happened, and what the authority says, on one line.
    var event: String {
        let end = detail.last.map { ".!?".contains($0) } == false ? "." : ""
        return "\(reason)\(detail.isEmpty ? "" : " The authority says: \(detail)\(end)")"
    }

    /// The failure for a response that violates the protocol. `what` completes "is not valid: …".
    static func badResponse(_ what: String) -> ACMEFailure {
        ACMEFailure(
            code: .badResponse, reason: "The authority's response is not valid: \(what).",
            advice: "Check acme.directory.")
    }

    /// The failure for a request without a response, for the given reason.
    static func unreachable(_ reason: String) -> ACMEFailure {
        ACMEFailure(
            code: .unreachable, reason: "The authority does not respond (\(ACMEProblem.sentence(reason))).",
            advice: "The server tries again later. Check the network, DNS, acme.directory and acme.authorities.")
    }

    /// The failure of the account's key to sign.
    static func cannotSign(_ error: any Error) -> ACMEFailure {
        ACMEFailure(
            code: .local, reason: "The account's key cannot sign (\(error)).",
            advice: "Delete account.pem in the authority's folder to make a new account.")
    }

    /// The failure for an order that takes too long. `what` completes "did not finish in time: …".
    static func timedOut(_ what: String) -> ACMEFailure {
        ACMEFailure(
            code: .timedOut, reason: "The authority did not finish in time: \(what).",
            advice: "The server tries again later. Check the authority's status page.")
    }

    /// The failure for a response with an error status.
    init(_ response: ACMEResponse) {
        let problem = ACMEProblem(response.object)
        self.init(
            code: .refused, reason: "The authority refused the request (status \(response.status)).",
            detail: problem.detail, advice: Self.advice(problem.type), retryAfter: response.retryAfter)
        switch (problem.type, response.status) {
        case ("rateLimited", _), (_, 429):
            (code, reason) = (.rateLimited, "The authority accepts no more requests for now.")
            advice = "The server waits and tries again. Use letsencrypt-staging for experiments."
        case ("userActionRequired", _):
            (code, reason) = (.termsChanged, "The authority's terms of service have changed.")
            advice =
                "Read them" + (problem.instance.map { " at \($0)" } ?? "")
                + " and follow the instructions there. The server tries again later."
        case (_, 300..<400):
            self = .badResponse("it redirects, which ACME does not allow")
        case (_, 500...):
            (code, reason) = (.unreachable, "The authority has a fault (status \(response.status)).")
            advice = "The server tries again later. Check the authority's status page."
        default: break
        }
    }

    /// The failure of a domain's validation.
    init(domain: String, _ challenge: ConfabConfiguration.ACME.Challenge, _ problem: ACMEProblem) {
        let advice =
            switch (problem.type, challenge) {
            // With `http-01`, an error of TLS is that of a redirect.
            case ("connection", _), ("tls", .http):
                "Check that port \(challenge.port) of this server is reachable from the Internet, over IPv6 too if the "
                    + "domain has an AAAA record."
            case ("tls", _), ("unauthorized", _), ("incorrectResponse", _):
                "Check that the domain leads to this server, and that no other program or proxy answers on its port "
                    + "\(challenge.port)."
            default: Self.advice(problem.type)
            }
        self.init(
            code: .challengeFailed, reason: "The authority could not verify the domain \(domain).",
            detail: problem.detail, advice: advice)
    }

    /// The failure of an order.
    init(order problem: ACMEProblem) {
        self.init(
            code: .refused, reason: "The authority refused to issue the certificate.", detail: problem.detail,
            advice: Self.advice(problem.type))
    }

    /// Makes a failure with these parts.
    init(code: Code, reason: String, detail: String = "", advice: String, retryAfter: Duration? = nil) {
        (self.code, self.reason, self.detail) = (code, reason, detail)
        (self.advice, self.retryAfter) = (advice, retryAfter)
    }

    /// What to do about an error of this type (RFC 8555 §6.7).
    private static func advice(_ type: String) -> String {
        switch type {
        case "dns": "Check the A and AAAA records of the domain: they must lead to this server."
        case "caa": "Change the domain's CAA record so that this authority may issue certificates for it."
        case "rejectedIdentifier", "unsupportedIdentifier", "malformed": "Check acme.domains."
        case "invalidContact", "unsupportedContact": "Check acme.email."
        case "externalAccountRequired": "Choose another authority: this one requires an account made beforehand."
        default: "The server tries again later."
        }
    }
}
