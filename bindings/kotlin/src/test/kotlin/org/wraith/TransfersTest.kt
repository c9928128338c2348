package org.wraith

import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.CoroutineStart
import kotlinx.coroutines.async
import kotlinx.coroutines.cancelAndJoin
import kotlinx.coroutines.runBlocking
import org.junit.jupiter.api.Assertions.assertArrayEquals
import org.junit.jupiter.api.Assertions.assertEquals
import org.junit.jupiter.api.Assertions.assertFalse
import org.junit.jupiter.api.Assertions.assertNotEquals
import org.junit.jupiter.api.Assertions.assertNull
import org.junit.jupiter.api.Assertions.assertTrue
import org.junit.jupiter.api.BeforeEach
import org.junit.jupiter.api.Test
import org.junit.jupiter.api.assertThrows
import org.junit.jupiter.api.io.TempDir
import java.nio.file.Path
import java.time.Duration
import kotlin.io.path.createDirectory
import kotlin.io.path.exists
import kotlin.io.path.readBytes
import kotlin.io.path.writeBytes
import kotlin.random.Random

/** Transfers and messages between two nodes over loopback. */
class TransfersTest {
    @TempDir
    lateinit var folder: Path
    private lateinit var film: Path

    @BeforeEach
    fun film() {
        film = folder.resolve("film.mov")
        film.writeBytes(Random(7).nextBytes(5_000_000))
    }

    @Test
    fun `a file arrives byte for byte`() = within {
        val (offer, ticket) = offered(newNode(), film)
        val incoming = asked(newNode(), ticket, folder.resolve("in"))
        assertEquals(5_000_000uL, incoming.offer().bytes)
        assertEquals(listOf("film.mov" to true), incoming.preview()?.map { it.shown to it.isNew })
        assertFalse(folder.resolve("in").exists(), "nothing is written before there is a yes")
        val received = incoming.accept(AcceptOptions()).finished()
        val sent = offer.finished()
        assertArrayEquals(film.readBytes(), folder.resolve("in/film.mov").readBytes())
        assertEquals(listOf(5_000_000uL, 5_000_000uL), listOf(received.bytesMoved, sent.bytesMoved))
    }

    @Test
    fun `events tell the file with its hash and then the end`() = within {
        val (offer, ticket) = offered(newNode(), film)
        val transfer = asked(newNode(), ticket, folder.resolve("in")).accept(AcceptOptions())
        val told = generateSequence { runBlocking { transfer.nextEvent() } }.toList()
        val file = told.filterIsInstance<Event.File>().single()
        assertEquals("film.mov", file.path)
        assertArrayEquals(hash(film.readBytes()), file.hash)
        assertEquals(Event.Done, told.last())
        assertNull(transfer.nextEvent())
        offer.finished()
    }

    @Test
    fun `progress is read on demand and ends at the total`() = within {
        val (offer, ticket) = offered(newNode(), film)
        assertNull(offer.progress(), "nobody has come")
        val transfer = asked(newNode(), ticket, folder.resolve("in")).accept(AcceptOptions())
        transfer.finished()
        offer.finished()
        for (progress in listOf(transfer.progress(), offer.progress())) {
            assertEquals(5_000_000uL to 1uL, progress?.let { it.bytes to it.files })
        }
    }

    @Test
    fun `a refusal reaches the sender with its reason`() = within {
        val (offer, ticket) = offered(newNode(), film)
        asked(newNode(), ticket, folder.resolve("in")).refuse("no room")
        val refused = failure<WraithException.Refused> { offer.finished() }
        assertTrue("no room" in refused.message!!, refused.message)
        assertFalse(folder.resolve("in").exists())
    }

    @Test
    fun `an offer is answered once`() = within {
        val (offer, ticket) = offered(newNode(), film)
        val incoming = asked(newNode(), ticket, folder.resolve("in"))
        val transfer = incoming.accept(AcceptOptions())
        assertThrows<WraithException.WrongState> { incoming.accept(AcceptOptions()) }
        failure<WraithException.WrongState> { incoming.refuse("") }
        transfer.finished()
        offer.finished()
    }

    @Test
    fun `a transfer is cancelled in the middle and the sender is told`() = within {
        val options = OfferOptions(bytesPerSecond = 200_000uL)
        val (offer, ticket) = offered(newNode(), film, options)
        val transfer = asked(newNode(), ticket, folder.resolve("in")).accept(AcceptOptions())
        while (transfer.nextEvent() != Event.Accepted) {
            // Skips earlier events.
        }
        assertTrue(transfer.cancel())
        failure<WraithException.Cancelled> { transfer.finished() }
        failure<WraithException.Cancelled> { offer.finished() }
        assertFalse(folder.resolve("in/film.mov").exists(), "no name before all of it is verified")
    }

    @Test
    fun `cancelling a coroutine that waits leaves the transfer alone`() = within {
        val (offer, ticket) = offered(newNode(), film)
        val waiting = async(start = CoroutineStart.UNDISPATCHED) { offer.finished() }
        waiting.cancelAndJoin()
        assertTrue(waiting.isCancelled)
        asked(newNode(), ticket, folder.resolve("in")).accept(AcceptOptions()).finished()
        offer.finished()
    }

    @Test
    fun `cancelling a coroutine that asks stops the question`() = within {
        val (offer, ticket) = offered(newNode(), film)
        offer.cancel()
        val asking = async(start = CoroutineStart.UNDISPATCHED) { asked(newNode(), ticket, folder.resolve("in")) }
        asking.cancelAndJoin()
        failure<CancellationException> { asking.await() }
    }

    @Test
    fun `wrong tickets are told apart`() = within {
        failure<WraithException.InvalidInput> { asked(newNode(), "not a ticket", folder) }
        val (offer, ticket) = offered(newNode(), film)
        assertTrue(offer.cancel())
        val soon = FetchOptions(timeout = Duration.ofMillis(500))
        failure<WraithException.NotFound> { asked(newNode(), ticket, folder.resolve("in"), soon) }
    }

    @Test
    fun `a message arrives in memory`() = within {
        val sender = newNode()
        val what = Content.Bytes("message", "grüße".toByteArray())
        val offer = sender.offer(what, Recipient.Ticket, OfferOptions())
        val incoming = newNode().fetch(offer.ticket()!!, Target.Memory(1000uL), FetchOptions())
        assertEquals(sender.nodeId(), incoming.sender())
        assertEquals("grüße", incoming.accept(AcceptOptions()).bytes().decodeToString())
        offer.finished()
    }

    @Test
    fun `names that are taken are decided by policy and by path`() = within {
        val target = folder.resolve("in").createDirectory()
        target.resolve("film.mov").writeBytes("older".toByteArray())
        val (offer, ticket) = offered(newNode(), film)
        val incoming = asked(newNode(), ticket, target)
        val entry = incoming.preview()!!.single()
        assertTrue(entry.hasConflict)
        val rule = ConflictRule(entry.path, OnConflict.OVERWRITE)
        incoming.accept(AcceptOptions(onConflict = OnConflict.SKIP, rules = listOf(rule))).finished()
        assertArrayEquals(film.readBytes(), target.resolve("film.mov").readBytes())
        offer.finished()
    }

    @Test
    fun `a contact is sent to without a code`() = within {
        val (sender, receiver) = newNode() to newNode()
        val listener = receiver.listen(folder.resolve("in").toString(), AcceptFilter.ANY_PEER)
        sender.addContact(Contact("anna", receiver.nodeId(), listOf(listener.address())))
        val offer = sender.offer(Content.Paths(listOf("$film")), Recipient.Contact("anna"), OfferOptions())
        val incoming = listener.nextOffer()!!
        assertEquals(sender.nodeId(), incoming.sender())
        incoming.accept(AcceptOptions()).finished()
        offer.finished()
        assertArrayEquals(film.readBytes(), folder.resolve("in/film.mov").readBytes())
        listener.stop()
        assertNull(listener.nextOffer())
    }

    @Test
    fun `a state folder keeps the identity`() {
        val options = NodeOptions(stateFolder = folder.resolve("state").toString())
        assertEquals(Node(options).nodeId(), Node(options).nodeId())
        assertNotEquals(Node(NodeOptions()).nodeId(), Node(options).nodeId())
    }
}
