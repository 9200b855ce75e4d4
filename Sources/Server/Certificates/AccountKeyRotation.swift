/// Replaces the key of the account at the ACME server: `confab certificate rotate-account-key`.
///
/// The new key is in `account-next.pem` until the authority has accepted it. So a rotation that was interrupted continues when
/// the command runs again.
public enum AccountKeyRotation {
    /// The authority did not accept the new key. The description is a message for the operator.
    public struct Refused: Error, CustomStringConvertible {
        public let description: String
    }

    /// Replaces the key at the authority, and then in the data directory. A running server uses it for its next order.
    ///
    /// - Returns: what happened, as a sentence.
    /// - Throws: `DataDirectoryError` if the key cannot be read or stored, or ``Refused`` if the authority did not accept it.
    public static func run(_ configuration: ConfabConfiguration) async throws -> String {
        guard let files = ACMEFiles(configuration),
            let directory = ACMEAuthority.directory(configuration.acme.directory)
        else { throw DataDirectoryError("acme.domains is not set, so there is no account. Specify --config.") }
        let newKey = try files.nextAccountKey()
        let change = ACMEKeyChange(directory: directory, oldKey: try files.accountKey(), newKey: newKey)
        let connection = ACMEConnection(authorities: configuration.acme.authorities)
        let result = await carryOut(change, connection)
        await connection.close()
        let outcome: ACMEKeyChange.Outcome
        switch result {
        case .success(let found): outcome = found
        case .failure(let failure):
            throw Refused(
                description:
                    "\(failure.event) The old key stays in use. Check the network and acme.directory, and run the command again."
            )
        }
        try files.useNextAccountKey()
        return switch outcome {
        case .changed: "The account has a new key."
        case .alreadyChanged: "The account has the new key, which the authority accepted in an earlier attempt."
        case .noAccount: "The authority has no account of the old key. The next order makes one with the new key."
        }
    }

    private static func carryOut(
        _ change: ACMEKeyChange, _ connection: ACMEConnection
    ) async -> Result<ACMEKeyChange.Outcome, ACMEFailure> {
        var change = change
        var output = change.handle(.start)
        while case .send(let request)? = output {
            switch await connection.send(request) {
            case .received(let response): output = change.handle(.received(response))
            case .lost(let reason): output = change.handle(.lost(reason))
            case .start, .waited: output = nil
            }
        }
        guard case .done(let result)? = output else {
            return .failure(
                ACMEFailure(code: .local, reason: "The change was stopped.", advice: "Run the command again."))
        }
        return result
    }
}
