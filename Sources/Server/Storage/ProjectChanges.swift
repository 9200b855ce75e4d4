public import Signaling
public import Wire

/// Changes to a project's properties, requested by `confab project` or over HTTP. A nil property is left unchanged.
public struct ProjectChanges: Sendable {
    /// What to do with a property that a project may lack.
    public enum Optional<Value: Sendable>: Sendable {
        case set(Value)
        case remove
    }

    private static let maxConnections = 1_000_000

    public var name: String?
    public var maxConnections: Optional<Int>?
    public var webhookURL: Optional<String>?
    public var application: Optional<Project.Application>?

    public init() {}

    /// The names of the members in JSON.
    static let names: Set<String> = ["name", "maxConnections", "webhookUrl", "applicationId", "publicKey"]

    /// Reads changes from a JSON object. `null` removes a property.
    init(members: JSONObject, _ settings: ConfabConfiguration.Webhooks) throws(WireError) {
        for member in members.members {
            switch (member.name, member.value) {
            case ("name", .string(let text)): try setName(text)
            case ("maxConnections", .integer(let count)): try setConnections(Int(count))
            case ("maxConnections", .null): maxConnections = .remove
            case ("webhookUrl", .string(let text)): try setWebhook(text, settings)
            case ("webhookUrl", .null): webhookURL = .remove
            case ("applicationId", .null), ("publicKey", .null): application = .remove
            case ("applicationId", .string(let id)):
                guard case .string(let key)? = members["publicKey"] else { throw Self.applicationInvalid }
                try setApplication(id, publicKey: key)
            case ("publicKey", .string): if members["applicationId"] == nil { throw Self.applicationInvalid }
            default: throw WireError(.malformed, "Invalid value of \"\(member.name)\". See docs/rest.md.")
            }
        }
    }

    public mutating func setName(_ text: String) throws(WireError) {
        guard let normalized = PersonName.normalized(text) else {
            throw WireError(
                .invalidName,
                "The name must not exceed \(Limits.personName) characters or contain line breaks or invisible characters."
            )
        }
        name = normalized
    }

    public mutating func setConnections(_ count: Int) throws(WireError) {
        guard (1...Self.maxConnections).contains(count) else {
            throw WireError(.malformed, "The maximum number of connections must be from 1 to \(Self.maxConnections).")
        }
        maxConnections = .set(count)
    }

    public mutating func setWebhook(_ text: String, _ settings: ConfabConfiguration.Webhooks) throws(WireError) {
        do throws(InvalidWebhook) {
            guard try !WebhookURL(text).isPrivate || settings.allowPrivateAddresses else {
                throw InvalidWebhook(
                    "The address in the URL of a webhook must be public, unless webhooks.allowPrivateAddresses is set.")
            }
        } catch {
            throw WireError(.malformed, error.description)
        }
        webhookURL = .set(text)
    }

    public mutating func setApplication(_ id: String, publicKey: String) throws(WireError) {
        let isID =
            (1...64).contains(id.utf8.count)
            && id.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                    UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "-"):
                    true
                default: false
                }
            }
        // An ID of digits could be the API key of another project.
        let isNumber = id.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard isID, !isNumber, let application = Project.Application(id: id, publicKey: publicKey) else {
            throw Self.applicationInvalid
        }
        self.application = .set(application)
    }

    private static let applicationInvalid = WireError(
        .malformed,
        "An application needs an ID of letters, digits and hyphens, not only digits, and an RSA public key of at least 2048 bits in PEM format."
    )

    /// Applies the changes. Creates a secret for a new webhook.
    public func apply(to project: inout StoredProject) {
        if let name { project.name = name }
        switch maxConnections {
        case .set(let count)?: project.maxConnections = count
        case .remove?: project.maxConnections = nil
        case nil: break
        }
        switch application {
        case .set(let application)?:
            (project.applicationID, project.publicKey) = (application.id, application.publicKey)
        case .remove?: (project.applicationID, project.publicKey) = (nil, nil)
        case nil: break
        }
        var random = SystemRandomNumberGenerator()
        switch webhookURL {
        case .set(let url)?: project.setWebhook(url, using: &random)
        case .remove?: project.setWebhook(nil, using: &random)
        case nil: break
        }
    }
}
