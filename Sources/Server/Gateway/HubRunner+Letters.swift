import Cluster
import DequeModule
import NIOCore
import Signaling

/// Posts letters to other nodes of the cluster. `HubRunner` calls this on its event loop, after all changes that the hub has made
/// before are stored.
protocol LetterPost: AnyObject {
    /// Posts a letter to a life of another node. Letters keep their order, whichever life they are for.
    func post(_ letter: Letter, to life: NodeTag)
    /// Whether too many letters wait. Clients are not read meanwhile.
    var isCongested: Bool { get }
}

extension RedisPost: LetterPost {}

/// The relays between this node and the others, over which media crosses. `HubRunner` calls this on its event loop.
protocol MediaRelays: AnyObject {
    /// Handles an event about a relay between this node and the life that has posted it.
    func receive(_ event: RelayLetter, from life: NodeTag)
    /// Notes a command that the media plane of this node has got.
    func note(_ command: MediaCommand)
}

// What other nodes have posted.
extension HubRunner {
    /// What to call for inputs that were submitted together.
    struct Receipt {
        /// The value of ``HubRunner/handledInputs`` when the last of them was handled.
        var number: UInt64
        var handled: () -> Void
        var carriedOut: () -> Void
    }

    /// Submits what other nodes have caused, in order.
    ///
    /// - Parameters:
    ///   - handled: called when the hub has handled all of it. While the rules are frozen, it waits.
    ///   - carriedOut: called after that, when the effects are carried out.
    func submit(
        received: [RedisPost.Received], handled: @escaping () -> Void, carriedOut: @escaping () -> Void
    ) {
        eventLoop.preconditionInEventLoop()
        for item in received {
            switch item {
            case .letter(let letter, let sender): inputs.append(.received(letter, from: sender))
            case .lost(let life): inputs.append(.lettersLost(life))
            }
        }
        let number = handledInputs + UInt64(inputs.count)
        receipts.append(Receipt(number: number, handled: handled, carriedOut: carriedOut))
        pump()
    }

    /// Calls what was to be called for the inputs that are handled now.
    func giveReceipts() {
        while let receipt = receipts.first, receipt.number <= handledInputs {
            receipts.removeFirst()
            receipt.handled()
            afterCommit(receipt.carriedOut)
        }
    }
}
