import Crypto
import Wire

/// Replaces the key of an account at an ACME server, which keeps the account (RFC 8555 §7.3.5).
///
/// A pure state machine, like `ACMEOrder`: directory, nonce, account of the new key, account of the old key, change. It first
/// looks for an account of the new key, because an earlier attempt may have succeeded without a response. It ends after
/// ``maxRequests`` requests, or with a result.
struct ACMEKeyChange {
    /// What happens to the change.
    enum Input: Sendable {
        /// Begins the change.
        case start
        /// The response to the request that was sent.
        case received(ACMEResponse)
        /// There is no response, for this reason.
        case lost(String)
    }

    /// What the shell must do.
    enum Output: Equatable, Sendable {
        /// Send this request and pass on its response.
        case send(ACMERequest)
        /// The change is done.
        case done(Result<Outcome, ACMEFailure>)
    }

    /// How the account has the new key.
    enum Outcome: Equatable, Sendable {
        /// The authority has replaced the old key.
        case changed
        /// An earlier attempt had replaced it.
        case alreadyChanged
        /// The authority has no account of the old key, so the next order makes one with the new key.
        case noAccount
    }

    /// Maximum number of requests: five, and some more for refused nonces (§6.5).
    static let maxRequests = 15

    /// A signed request.
    private enum Post: Equatable { case newKeyAccount, oldKeyAccount, change(account: String) }

    /// What the change is waiting for.
    private enum Step {
        case idle
        case directory
        /// Waits for the first nonce.
        case nonce(ACMEDirectory)
        case answer(Post, ACMEDirectory)
        case done
    }

    private let directoryURL: String
    private let oldKey: P256.Signing.PrivateKey
    private let newKey: P256.Signing.PrivateKey
    private var step = Step.idle
    private var nonce: String?
    private var requests = 0

    /// - Parameter directory: the URL of the authority's directory.
    init(directory: String, oldKey: P256.Signing.PrivateKey, newKey: P256.Signing.PrivateKey) {
        (directoryURL, self.oldKey, self.newKey) = (directory, oldKey, newKey)
    }

    /// Handles an input. Returns nil for an input that does not fit the current step, such as a response after the end.
    mutating func handle(_ input: Input) -> Output? {
        do throws(ACMEFailure) {
            return try take(input)
        } catch {
            return finish(.failure(error))
        }
    }

    private mutating func take(_ input: Input) throws(ACMEFailure) -> Output? {
        switch (step, input) {
        case (.idle, .start):
            step = .directory
            return try send(ACMERequest(method: .get, url: directoryURL))
        case (.directory, .received(let response)):
            guard response.status == 200 else { throw ACMEFailure(response) }
            guard let found = response.object.flatMap({ ACMEDirectory($0) }) else {
                throw .badResponse("it is not a directory")
            }
            guard found.keyChange != nil else { throw Self.unsupported }
            step = .nonce(found)
            return try send(ACMERequest(method: .head, url: found.newNonce))
        case (.nonce(let directory), .received(let response)):
            nonce = response.nonce
            guard nonce != nil else {
                throw response.status >= 300 ? ACMEFailure(response) : .badResponse("it has no Replay-Nonce")
            }
            return try post(.newKeyAccount, directory)
        case (.answer(let post, let directory), .received(let response)):
            nonce = response.nonce ?? nonce
            return try read(response, to: post, directory)
        case (.directory, .lost(let reason)), (.nonce, .lost(let reason)), (.answer, .lost(let reason)):
            throw .unreachable(reason)
        default: return nil
        }
    }

    private static let unsupported = ACMEFailure(
        code: .refused, reason: "The authority does not allow to change the key of an account.",
        advice: "Delete account.pem in the authority's folder to make a new account.")

    private mutating func send(_ request: ACMERequest) throws(ACMEFailure) -> Output {
        requests += 1
        guard requests <= Self.maxRequests else { throw .timedOut("too many requests") }
        return .send(request)
    }

    private mutating func finish(_ result: Result<Outcome, ACMEFailure>) -> Output {
        step = .done
        return .done(result)
    }

    private mutating func post(_ post: Post, _ directory: ACMEDirectory) throws(ACMEFailure) -> Output {
        guard let nonce else { throw .badResponse("it has no Replay-Nonce") }
        self.nonce = nil
        step = .answer(post, directory)
        // Looks for the account, and does not make one (§7.3.1).
        let search = JSONObject([.init(name: "onlyReturnExisting", value: .bool(true))])
        let url: String
        let body: [UInt8]
        do {
            switch post {
            case .newKeyAccount, .oldKeyAccount:
                url = directory.newAccount
                body = try JSONWebSignature.sign(
                    search, with: post == .newKeyAccount ? newKey : oldKey, as: .publicKey, nonce: nonce, url: url)
            case .change(let account):
                url = directory.keyChange ?? ""
                body = try JSONWebSignature.sign(
                    try change(of: account, url: url), with: oldKey, as: .account(account), nonce: nonce, url: url)
            }
        } catch {
            throw .cannotSign(error)
        }
        return try send(ACMERequest(method: .post, url: url, body: body))
    }

    /// The inner message, which the new key signs. The outer one, which the old key signs, has the nonce.
    private func change(of account: String, url: String) throws -> JSONObject {
        let payload = JSONObject([
            .init(name: "account", value: .string(account)),
            .init(name: "oldKey", value: .object(JSONWebSignature.publicJWK(oldKey.publicKey))),
        ])
        return try JSONWebSignature.message(payload, with: newKey, as: .publicKey, nonce: nil, url: url)
    }

    private mutating func read(
        _ response: ACMEResponse, to post: Post, _ directory: ACMEDirectory
    ) throws(ACMEFailure) -> Output {
        let isSuccess = (200..<300).contains(response.status)
        let problem = isSuccess ? "" : ACMEProblem(response.object).type
        if problem == "badNonce" { return try self.post(post, directory) }
        switch post {
        case .newKeyAccount where problem == "accountDoesNotExist": return try self.post(.oldKeyAccount, directory)
        case .newKeyAccount where isSuccess: return finish(.success(.alreadyChanged))
        case .oldKeyAccount where problem == "accountDoesNotExist": return finish(.success(.noAccount))
        case .oldKeyAccount where isSuccess:
            return try self.post(.change(account: try response.location()), directory)
        case .change where isSuccess: return finish(.success(.changed))
        default: throw ACMEFailure(response)
        }
    }
}
