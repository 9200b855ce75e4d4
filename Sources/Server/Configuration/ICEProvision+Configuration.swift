import Signaling

extension ICEProvision {
    init(_ configuration: ConfabConfiguration.ICE) {
        var credentials: TURNCredentials?
        if let secret = configuration.turnSecret {
            credentials = .timeLimited(secret: secret.revealed, lifetime: configuration.credentialLifetime)
        } else if let username = configuration.turnUsername, let password = configuration.turnPassword {
            credentials = .fixed(username: username, password: password.revealed)
        }
        self.init(
            stunServers: configuration.stunServers, turnServers: configuration.turnServers, credentials: credentials
        )
    }
}
