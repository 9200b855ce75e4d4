import Wire

extension RelayLetter: LetterEvent {
    static var blanks: [RelayLetter] { [.credentials(RelayCredentials(index: 0, attempt: 1, ufrag: "", password: ""))] }

    mutating func code(_ coder: inout FieldCoder) throws(WireError) {
        switch self {
        case .credentials(var credentials):
            try coder.event("credentials")
            try coder.integer("index", &credentials.index, in: 0...UInt8.max)
            try coder.integer("attempt", &credentials.attempt, in: 1...UInt32.max)
            credentials.ufrag = try coder.text("ufrag", credentials.ufrag)
            credentials.password = try coder.text("password", credentials.password)
            self = .credentials(credentials)
        }
    }
}
