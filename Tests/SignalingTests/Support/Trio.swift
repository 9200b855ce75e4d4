import Signaling
import Wire

/// Three guests who are online, with empty inboxes.
struct Trio {
    let stage = Stage()
    let ada: Guest
    let bob: Guest
    let eve: Guest

    init() {
        ada = stage.present("Ada")
        bob = stage.present("Bob")
        eve = stage.present("Eve")
    }
}

/// A suite with three guests who call each other, available by name.
protocol WithTrio {
    var trio: Trio { get }
}

extension WithTrio {
    var stage: Stage { trio.stage }
    var ada: Guest { trio.ada }
    var bob: Guest { trio.bob }
    var eve: Guest { trio.eve }
}

/// A session with routed media and two members.
struct RoutedRoom {
    let stage = Stage { $0.routesMedia = true }
    let session: SessionID
    let ada: Guest
    let bob: Guest
    let mids = MediaMids(audio: "0", video: "1")

    init() {
        session = stage.room(.routed)
        (ada, bob) = (stage.arrive(), stage.arrive())
        for guest in [ada, bob] { guest.enter(session, on: stage) }
        ada.take()
    }
}

/// A suite about what these two members publish and subscribe to.
protocol InRoutedRoom {
    var room: RoutedRoom { get }
}

extension InRoutedRoom {
    var stage: Stage { room.stage }
    var session: SessionID { room.session }
    var ada: Guest { room.ada }
    var bob: Guest { room.bob }
    var mids: MediaMids { room.mids }
}
