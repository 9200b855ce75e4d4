import Wire

/// What the people of a simulated population do. The figures are assumptions, chosen so that a fifth of the people meet strangers, as
/// in docs/scaling.md, and so that everything that crosses nodes happens often.
///
/// People come in blocks, so that contacts and rooms follow from a person's number and need no memory.
enum PopulationHabit {
    /// Meets strangers, one after the other. Strangers have no contacts.
    case roulette
    /// Meets the same few people in a room, by its name.
    case room(Int)
    /// Is online, sees which contacts are, and calls one of them from time to time.
    case calls

    /// The people of a block.
    static let block = 120
    private static let roulettePeople = 24
    private static let roomPeople = 12
    /// The people of a room: as many as a room admits if the server does not route media.
    static let roomSize = 3
    /// The people of whom each is a contact of every other one.
    private static let circle = 7

    /// How long a person stays before the page is closed, and how long they are away then. The latter is shorter than in life, so that
    /// the number of people who are present hardly changes.
    static let stay = Duration.seconds(1200)
    static let absence = Duration.seconds(30)
    /// How long a chat lasts at least. With less, the rules make people wait who press Next.
    static let shortestChat = Duration.seconds(6)
    /// After how long one of the two people presses Next. As both may, a chat lasts about a minute.
    static let chat = Duration.seconds(110)
    /// The time until a line of text in a chat, and between two lines of a person in a room.
    static let line = Duration.seconds(20)
    static let roomLine = Duration.seconds(60)
    /// How long a person who makes calls waits before the next one, and how long a call lasts.
    static let callPause = Duration.seconds(3600)
    static let call = Duration.seconds(180)
    /// How long it rings before the callee accepts.
    static let ringing = Duration.seconds(4)
    /// How long a person waits before the first search or room, and after a request has failed.
    static let pause = Duration.seconds(5)
    /// How often a client shows that it is there, which it does also while it is idle.
    static let ping = Duration.seconds(10)

    init(_ person: Int) {
        let place = person % Self.block
        if place < Self.roulettePeople {
            self = .roulette
        } else if place < Self.roulettePeople + Self.roomPeople {
            let rooms = Self.roomPeople / Self.roomSize
            self = .room(person / Self.block * rooms + (place - Self.roulettePeople) / Self.roomSize)
        } else {
            self = .calls
        }
    }

    /// The contacts of a person, who have the same habit.
    static func contacts(of person: Int) -> [Int] {
        guard case .calls = PopulationHabit(person) else { return [] }
        let start = roulettePeople + roomPeople
        let first = person - (person % block - start) % circle
        return (first..<first + circle).filter { $0 != person }
    }
}
